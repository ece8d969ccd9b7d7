#!/usr/bin/env bash
# Trains a small GPT, fully sharded over 4 MPI ranks, stops it on the way, and goes on with 2. `mpi-examples/demo.sh --help`
# says how.
set -euo pipefail

# shellcheck source=cmake/commands.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cmake/commands.sh"

ranks=4 fewer=2 every=300
# What the demo trains takes about two minutes on two cores: the defaults of 03_gpt. Options given to the script come after
# these and win. mpiexec hides from the ranks that stderr is a terminal.
options=()
[[ ! -t 2 ]] || options+=(--progress on)

# The buffers that ranks exchange data through are as large for a small model as for a large one; this one does with less.
export FSDP_STAGING_BYTES=${FSDP_STAGING_BYTES:-256K}

usage() {
    cat <<END
Usage: mpi-examples/demo.sh [--no-install] [OPTION OF 03_gpt...]

Installs the packages that are missing (as root, or through sudo), builds, and trains a GPT on $ranks ranks. Once it has saved
a checkpoint, behind step $every, one rank is sent SIGUSR1, as a scheduler would: all ranks save and end, and training goes on
with $fewer ranks.

  --no-install    say which packages are missing instead of installing them, and fail if there are any
  --help          this text and, once it is built, that of 03_gpt
END
}

# find_launcher RANKS: the command that starts them, of the MPI that the build has found, into the array `launch`.
find_launcher() {
    launch=("$(fsdp_cached default MPIEXEC_EXECUTABLE)" "$(fsdp_cached default MPIEXEC_NUMPROC_FLAG)" "$1")
    # 4 ranks on a machine with fewer cores, none of them bound to one; shared memory is the only network needed
    if [[ $(fsdp_cached default FSDP_MPI_IS_OPENMPI) == 1 ]]; then
        launch+=(--oversubscribe --bind-to none --mca pml ob1 --mca btl "self,vader")
    fi
}

# train RANKS COMMAND...: starts the launcher as `job`; each rank leaves its process number in pids/.
train() {
    local launch
    find_launcher "$1"
    shift
    rm -rf "$folder/pids" && mkdir "$folder/pids"
    # shellcheck disable=SC2016 # expanded by the ranks
    "${launch[@]}" bash -c 'touch "$0/$$" && exec "$@"' "$folder/pids" "$@" &
    job=$!
}

# end_of_training: waits for the job, and returns its status.
end_of_training() {
    local status=0
    wait "$job" || status=$?
    job=
    return "$status"
}

# stop_once_saved JOB
stop_once_saved() {
    local pids
    until [[ -e $folder/run/latest ]]; do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.2
    done
    pids=("$folder/pids"/*)
    kill -USR1 "$(basename "${pids[0]}")" 2>/dev/null || true
}

# However the script ends, so do the ranks, and the folder goes.
clean_up() {
    if [[ -n $job ]]; then
        kill "$job" 2>/dev/null || true
        wait "$job" || true
    fi
    rm -rf "$folder"
}

run_demo() {
    local status=0
    train "$ranks" "$@"
    stop_once_saved "$job"
    end_of_training || status=$?
    ((status == 75)) || return $status # it had ended before
    printf '\nand now on %s ranks:\n\n' "$fewer"
    train "$fewer" "$@"
    end_of_training
}

main() {
    local install=yes program=$fsdp_source/build/default/mpi-examples/03_gpt/03_gpt
    if [[ ${1-} == --help || ${1-} == -h ]]; then
        usage
        [[ ! -x $program ]] || "$program" --help
        return
    fi
    if [[ ${1-} == --no-install ]]; then
        install=no
        shift
    fi

    local here=$PWD
    fsdp_require_packages "$install" build demo
    fsdp_build default 03_gpt
    fsdp_allow_root default
    folder=$(mktemp -d)
    job=
    trap clean_up EXIT
    cd "$here" # where the paths among the options were meant
    run_demo "$program" "${options[@]}" --checkpoint "$folder/run" --every "$every" "$@"
}

main "$@"
