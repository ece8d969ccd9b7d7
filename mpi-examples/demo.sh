#!/usr/bin/env bash
# Trains a small GPT, fully sharded over 4 MPI ranks. `mpi-examples/demo.sh --help` says how.
set -euo pipefail

# shellcheck source=cmake/commands.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cmake/commands.sh"

ranks=4
# What the demo trains takes about a minute and a half on two cores: the defaults of 03_gpt. Options given to the script
# come after these and win. mpiexec hides from the ranks that stderr is a terminal.
options=()
[[ ! -t 2 ]] || options+=(--progress on)

usage() {
    cat <<END
Usage: mpi-examples/demo.sh [--no-install] [OPTION OF 03_gpt...]

Installs the packages that are missing (as root, or through sudo), builds, and trains a GPT on $ranks ranks.

  --no-install    say which packages are missing instead of installing them, and fail if there are any
  --help          this text and, once it is built, that of 03_gpt
END
}

# The command that starts the ranks, of the MPI that the build has found, into the array `launch`.
find_launcher() {
    launch=("$(fsdp_cached default MPIEXEC_EXECUTABLE)" "$(fsdp_cached default MPIEXEC_NUMPROC_FLAG)" "$ranks")
    # 4 ranks on a machine with fewer cores, none of them bound to one; shared memory is the only network needed
    if [[ $(fsdp_cached default FSDP_MPI_IS_OPENMPI) == 1 ]]; then
        launch+=(--oversubscribe --bind-to none --mca pml ob1 --mca btl "self,vader")
    fi
}

main() {
    local install=yes program=$fsdp_source/build/default/mpi-examples/03_gpt/03_gpt launch
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
    find_launcher
    cd "$here" # where the paths among the options were meant
    exec "${launch[@]}" "$program" "${options[@]}" "$@"
}

main "$@"
