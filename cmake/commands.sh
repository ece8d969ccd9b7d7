# shellcheck shell=bash
# What mpi-examples/demo.sh and tests/run.sh share. Sourced; sets fsdp_source, the top folder.

fsdp_source=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=cmake/dependencies.sh
. "$fsdp_source/cmake/dependencies.sh"

# fsdp_check_writable FILE...: each one that exists belongs to this user.
fsdp_check_writable() {
    local file
    for file in "$@"; do
        if [[ -e $file && ! -w $file ]]; then
            echo "$file was made by $(stat -c %U "$file") and cannot be written by $(id -un);" \
                "remove $fsdp_source/build as $(stat -c %U "$file"), or use a checkout of your own." >&2
            return 1
        fi
    done
}

# fsdp_build PRESET [-DNAME=VALUE...] [TARGET...]: configures, since packages may have come that were not there the last time, and builds.
fsdp_build() {
    local preset=$1 folder=$fsdp_source/build/$1 settings=() targets=()
    shift
    while [[ ${1-} == -D* ]]; do
        settings+=("$1")
        shift
    done
    (($# == 0)) || targets=(--target "$@")
    if [[ ! -e $fsdp_source/build ]]; then
        fsdp_check_writable "$fsdp_source"
    fi
    fsdp_check_writable "$fsdp_source/build" "$folder" "$folder/CMakeCache.txt" "$folder/CMakeFiles"

    cd "$fsdp_source" # presets are found from here only
    cmake --preset "$preset" ${settings[@]+"${settings[@]}"}
    cmake --build --preset "$preset" --parallel "$(nproc)" "${targets[@]}"
}

# fsdp_cached PRESET NAME: the value of a variable of a configured build.
fsdp_cached() {
    sed -n "s/^$2:[A-Z]*=//p" "$fsdp_source/build/$1/CMakeCache.txt"
}

# fsdp_allow_root PRESET: Open MPI refuses to run as root unless it is told twice that this is wanted.
fsdp_allow_root() {
    [[ $EUID -eq 0 && $(fsdp_cached "$1" FSDP_MPI_IS_OPENMPI) == 1 ]] || return 0
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    echo "Running as root, which Open MPI refuses by default: allowed with OMPI_ALLOW_RUN_AS_ROOT=1" \
        "and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1."
}
