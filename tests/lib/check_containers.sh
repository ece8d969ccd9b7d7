#!/usr/bin/env bash
# Ranks of one host that see different folders at /dev/shm, as in containers, count as ranks of several nodes, and get the
# same results.
#
#   check_containers.sh RANKS_EACH PROGRAM,... MPIEXEC_AND_ITS_ARGUMENTS...
#
# Two containers of so many ranks each are made of name spaces: of mounts, with a memory file system of their own, and of
# processes. Needs root, unshare(1) and nsenter(1). The programs are tests; they run in turn.
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"

[[ $(id -u) -eq 0 ]] || skip "name spaces take root"
for tool in unshare nsenter; do
    command -v "$tool" >/dev/null || skip "there is no $tool"
done
unshare --mount --pid --fork true 2>/dev/null || skip "unshare --mount --pid is not permitted here"
unshare --mount mount -t tmpfs tmpfs /dev/shm 2>/dev/null || skip "a tmpfs cannot be mounted here"

export RANKS_EACH=$1
IFS=, read -ra programs <<<"$2"
shift 2
mpiexec=("$@")
log=$folder/log
holders=()
trap 'kill -KILL "${holders[@]}" 2>/dev/null || true; rm -rf "$folder"' EXIT

# MPI itself must not share memory across containers.
export OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo
export FSDP_LOG=info

# A process that keeps the name spaces of a container, until it is killed; the one inside them is its child.
make_container() { # NUMBER
    # shellcheck disable=SC2016 # expanded inside
    unshare --mount --pid --fork --kill-child bash -c \
        'mount -t tmpfs tmpfs /dev/shm && mount -t proc proc /proc && : >"$1" && exec sleep infinity' \
        bash "$folder/ready$1" >"$log" 2>&1 &
    holders+=($!)
    disown
    until [[ -e $folder/ready$1 ]]; do
        kill -0 "${holders[-1]}" 2>/dev/null || fail "container $1 ended by itself"
        sleep 0.05 # for the container, however long it takes
    done
}

inside() { # PROCESS: its child
    cat "/proc/$1/task/$1/children"
}

# run PROGRAM HOW...: each rank in its container, and there by HOW
run() {
    local program=$1
    shift
    # shellcheck disable=SC2016 # expanded by each rank
    timeout "$((200 * ${TEST_TIME_FACTOR:-1}))" "${mpiexec[@]}" bash -c '
        containers=($CONTAINERS)
        exec nsenter --target "${containers[OMPI_COMM_WORLD_RANK / RANKS_EACH]}" --mount --pid -- "$@"' \
        bash "$@" "$program" >"$log" 2>&1 </dev/null || fail "${program##*/} $*: status $?"
    grep -q "context opened: $((2 * RANKS_EACH)) ranks on 2 nodes" "$log" || fail "${program##*/}: not on 2 nodes"
    [[ $(grep -c "warning: \[rank 0\] $RANKS_EACH ranks* of this host sees* another folder" "$log") -ge 1 ]] ||
        fail "${program##*/}: no warning of two folders"
}

reads() { # WORDS: of how peers' memory is read
    grep -q "context opened: .*; peers' memory is $1" "$log" || fail "peers' memory is not $1"
}

make_container 0
make_container 1
CONTAINERS="$(inside "${holders[0]}") $(inside "${holders[1]}")"
export CONTAINERS

for program in "${programs[@]}"; do
    run "$program"
done
echo "${#programs[@]} programs pass in 2 containers of $RANKS_EACH ranks"

# Within a container, each rank now sees none of the others' processes.
run "${programs[0]}" unshare --pid --fork
reads "read through shared memory"
echo "and where no rank can read another's memory"
