#!/usr/bin/env bash
# The packages libfsdp needs, in one list, and how they get onto the machine.
#
#   cmake/dependencies.sh [--no-install] [GROUP...]     finds what is missing and installs it; default: build demo test
#
# Or sourced, for fsdp_require_packages. On a system without dpkg it looks for the programs instead, and installs nothing.

# Group, package, how to tell that it is there without dpkg, and what it is for.
fsdp_packages=(
    'build | gcc            | command -v cc                  | C compiler'
    'build | libc6-dev      | :                              | headers of the C library'
    'build | make           | command -v make                | runs the build'
    'build | cmake          | command -v cmake               | describes the build, 3.25 or newer'
    'build | pkg-config     | command -v pkg-config          | finds cmocka and BLAS'
    'build | libopenmpi-dev | command -v mpicc               | MPI, to compile with'
    'build | openmpi-bin    | command -v mpiexec             | MPI, to start programs with'
    'build | libhwloc-dev   | pkg-config --exists hwloc      | knows cores, caches, NUMA nodes and where GPUs are'
    'build | libopenblas-dev| pkg-config --exists openblas   | matrix products of the examples'
    'build | zlib1g-dev     | pkg-config --exists zlib       | reads the images that an example learns'
    'build | libxxhash-dev  | pkg-config --exists libxxhash  | checksums of checkpoints'
    'build | libcmocka-dev  | pkg-config --exists cmocka     | unit tests, part of the default build'
    'demo  | bible-kjv      | command -v bible               | the text that the demo learns'
    'demo  | dataset-fashion-mnist | test -d /usr/share/datasets/fashion-mnist | the images that 04_fashion_mnist learns'
    'test  | g++            | command -v c++                 | shows that the headers serve C++'
    'test  | gfortran       | command -v gfortran            | compiles the module of Fortran, and what tests it and the drop-in'
    'test  | python3        | command -v python3             | reads and writes checkpoints independently'
    'test  | locales        | test -d /usr/share/i18n/locales | makes a locale with decimal commas'
    'test  | valgrind       | command -v valgrind            | looks for leaks'
    'test  | procps         | command -v pgrep               | finds the rank that a test stops'
    'test  | iproute2       | command -v ip                  | makes several hosts of one machine'
    'test  | gnuplot-nox    | command -v gnuplot             | draws the figures of fsdp-bench'
    'lammps | liblammps-dev | test -e /usr/include/lammps/library.h | LAMMPS, in which 06_molecular_dynamics trains a potential'
    'guides | libdnnl-dev   | :                              | oneDNN, which docs/onednn.md computes layers with'
    'guides | libtorch-dev  | :                              | LibTorch, which docs/libtorch.md computes layers with'
    'docs  | graphviz       | command -v dot                 | draws the rooms of the sources'
    'mpich | libmpich-dev   | command -v mpicc.mpich         | the second MPI, to compile with'
    'mpich | mpich          | command -v mpiexec.mpich       | the second MPI, to start programs with'
    'aarch64 | gcc-aarch64-linux-gnu | command -v aarch64-linux-gnu-gcc | compiles the kernels for 64-bit Arm'
    'aarch64 | libc6-dev-arm64-cross | test -d /usr/aarch64-linux-gnu/include | the C library for it'
    'aarch64 | qemu-user      | command -v qemu-aarch64        | runs their tests'
    'packages | dpkg-dev    | command -v dpkg-shlibdeps      | finds what the libraries of a package need'
    'packages | gfortran    | command -v gfortran            | compiles the module of Fortran'
    'packages | file        | command -v file                | tells CPack what is a library'
    'packages | environment-modules | command -v modulecmd   | loads the module file, in its test'
    'slurm | slurmctld      | command -v slurmctld          | Slurm itself, which its tests start on virtual hosts'
    'slurm | slurmd         | command -v slurmd             | the same on each node'
    'slurm | slurm-client   | command -v srun               | commands of Slurm'
    'slurm | munge          | command -v munged             | authentication of Slurm'
    'soak  | debootstrap    | command -v debootstrap         | makes the Debian 13 that the tests run in once more'
    'soak  | git            | command -v git                 | clones the checkout into it'
    'fuzz  | clang          | command -v clang               | compiles the fuzzers'
    'fuzz  | libclang-rt-dev| :                              | libFuzzer and sanitizers for it'
    'hip   | libamdhip64-dev| pkg-config --exists hip        | the HIP runtime, which knows GPU memory'
    'hip   | hipcc          | command -v hipcc               | compiles kernels for GPUs'
    'hip   | rocm-device-libs | command -v hipcc             | what these kernels link'
)

fsdp_trim() {
    local text=$1
    text=${text#"${text%%[! ]*}"}
    printf '%s' "${text%"${text##*[! ]}"}"
}

# Sets fsdp_names, fsdp_probes and fsdp_purposes to the rows of the groups given.
fsdp_select_packages() {
    local row group name probe purpose wanted
    fsdp_names=() fsdp_probes=() fsdp_purposes=()
    for row in "${fsdp_packages[@]}"; do
        IFS='|' read -r group name probe purpose <<<"$row"
        for wanted in "$@"; do
            [[ ${group// /} == "$wanted" ]] || continue
            fsdp_names+=("${name// /}")
            fsdp_probes+=("$(fsdp_trim "$probe")")
            fsdp_purposes+=("$(fsdp_trim "$purpose")")
        done
    done
}

# Sets fsdp_missing to the indices of the selected packages that are not there.
fsdp_find_missing() {
    local i installed=''
    fsdp_missing=()
    if command -v dpkg-query >/dev/null; then
        # shellcheck disable=SC2016 # the format is dpkg-query's
        installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${fsdp_names[@]}" 2>/dev/null) || true
    fi
    for i in "${!fsdp_names[@]}"; do
        if command -v dpkg-query >/dev/null; then
            grep -qxF "installed ${fsdp_names[i]}" <<<"$installed" || fsdp_missing+=("$i")
        else
            ${fsdp_probes[i]} >/dev/null 2>&1 || fsdp_missing+=("$i")
        fi
    done
}

fsdp_print_missing() {
    local i
    for i in "${fsdp_missing[@]}"; do
        printf '  %-21s %s\n' "${fsdp_names[i]}" "${fsdp_purposes[i]}"
    done
}

# Sets fsdp_as_root to the command that makes another run as root: nothing, or sudo. Fails if there is no way.
fsdp_find_root() {
    fsdp_as_root=()
    ((EUID != 0)) || return 0
    command -v sudo >/dev/null || return 1
    fsdp_as_root=(sudo)
    # without a terminal sudo cannot ask for a password
    [[ -t 0 ]] || sudo -n true 2>/dev/null
}

# fsdp_apt_install PACKAGE...
fsdp_apt_install() {
    local apt=("${fsdp_as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -q)
    "${apt[@]}" update || echo "The package lists could not all be refreshed; trying with those at hand." >&2
    "${apt[@]}" install -y --no-install-recommends "$@" </dev/null
}

# fsdp_require_packages INSTALL GROUP...: makes sure that the packages of the groups are there. INSTALL is yes or no.
fsdp_require_packages() {
    local install=$1 i names=()
    shift
    fsdp_select_packages "$@"
    fsdp_find_missing
    ((${#fsdp_missing[@]} > 0)) || return 0
    for i in "${fsdp_missing[@]}"; do
        names+=("${fsdp_names[i]}")
    done

    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        echo "Missing; these are the names of Debian's packages, please install what your system calls them:" >&2
        fsdp_print_missing >&2
        return 1
    fi
    if [[ $install != yes ]] || ! fsdp_find_root; then
        echo "Missing packages:" >&2
        fsdp_print_missing >&2
        echo "To install them, run as root:" >&2
        echo "apt-get update && apt-get install -y --no-install-recommends ${names[*]}" >&2
        return 1
    fi

    echo "Missing packages, which apt-get will now install${fsdp_as_root:+ through sudo}:"
    fsdp_print_missing
    if ! fsdp_apt_install "${names[@]}"; then
        echo "apt-get could not install: ${names[*]}" >&2
        return 1
    fi
    fsdp_find_missing
    ((${#fsdp_missing[@]} == 0)) || { echo "Still missing after the installation:" >&2; fsdp_print_missing >&2; return 1; }
}

fsdp_list_groups() {
    printf '%s\n' "${fsdp_packages[@]%% *}" | sort -u | paste -sd ' '
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    set -euo pipefail
    fsdp_install=yes
    if [[ ${1-} == --help || ${1-} == -h ]]; then
        echo "usage: cmake/dependencies.sh [--no-install] [GROUP...]"
        echo "Installs the packages that are missing, or only names them; GROUP is of: $(fsdp_list_groups); default: build demo test"
        exit
    fi
    if [[ ${1-} == --no-install ]]; then
        fsdp_install=no
        shift
    fi
    (($# > 0)) || set -- build demo test
    for fsdp_group; do
        if [[ " $(fsdp_list_groups) " != *" $fsdp_group "* ]]; then
            echo "dependencies.sh: there is no group '$fsdp_group'; use $(fsdp_list_groups)" >&2
            exit 2
        fi
    done
    fsdp_require_packages "$fsdp_install" "$@"
fi
