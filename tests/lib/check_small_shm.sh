#!/usr/bin/env bash
# A folder for shared memory that is too small is an error that says so, never a signal; and no run leaves anything there.
#
#   check_small_shm.sh PROGRAM RANKS MPIEXEC_AND_ITS_ARGUMENTS...
#
# Needs root and unshare(1): it mounts memory file systems in a name space of its own. PROGRAM is shm_probe.
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"

fail() {
    echo "$1"
    cat "$log" "$said"/* 2>/dev/null
    exit 1
}

if [[ ${1:-} != --inside ]]; then
    [[ $(id -u) -eq 0 ]] || skip "mounting a file system takes root"
    command -v unshare >/dev/null || skip "there is no unshare"
    unshare -m true 2>/dev/null || skip "unshare -m is not permitted here"
    unshare -m "$0" --inside "$@"
    exit
fi
shift

program=$1 ranks=$2
shift 2
mpiexec=("$@")
log=$folder/log
shm=$folder/shm
said=$folder/said # a file for what each process says, since mpiexec may mix the lines of several
mkdir "$shm" "$said"
trap 'unmount; rm -rf "$folder"' EXIT
export FSDP_LOG=off

# Lazily, since a process that was killed may still be ending.
unmount() {
    umount --lazy "$shm" 2>/dev/null || true
}

mount_read_only() {
    unmount
    mount -t tmpfs -o ro tmpfs "$shm" 2>"$log" || skip "a tmpfs cannot be mounted here: $(cat "$log")"
}

mount_of() {
    unmount
    mount -t tmpfs -o "size=$1" tmpfs "$shm" 2>"$log" || skip "a tmpfs cannot be mounted here: $(cat "$log")"
}

probe() {
    rm -f "$said"/*
    # shellcheck disable=SC2016 # expanded by each rank
    timeout "$((200 * ${TEST_TIME_FACTOR:-1}))" "${mpiexec[@]}" bash -c 'exec "$1" "$2" >"$3/$$"' bash "$program" "$1" "$said" >"$log" 2>&1 </dev/null
}

# said_by_all REGEX: the lines that match, of all ranks
said_by_all() {
    cat "$said"/* 2>/dev/null | grep -E "$1" || true
}

run() {
    probe "$1" || fail "shm_probe $1: status $?"
    [[ $(said_by_all '^ended well$' | wc -l) -eq $ranks ]] || fail "shm_probe $1: not all ranks ended well"
}

# expect_refused HOW_OFTEN REGEX: what each rank says of it
expect_refused() {
    local found
    found=$(said_by_all "^refused: .*$2" | wc -l)
    [[ $found -eq $1 ]] || fail "$found of $1 refusals say '$2'"
}

# run_once TASK REGEX: all ranks together print one line, which matches
run_once() {
    FSDP_LOG=error run "$1"
    [[ $(grep -c 'libfsdp: ' "$log") -eq 1 ]] || fail "shm_probe $1: not one line is printed"
    grep -q "libfsdp: error: \[rank 0\] .*$2" "$log" || fail "shm_probe $1: the line that is printed does not say '$2'"
}

expect_empty() {
    [[ -z $(ls -A "$1") ]] || fail "left in $1: $(ls -A "$1")"
}

export FSDP_SHM_DIR=$shm
mount_read_only
run_once init 'Read-only file system'
expect_refused "$ranks" 'Read-only file system'
expect_refused 0 '(No such file|the leader of this node)'
echo "a folder that can only be read is named, once in all"

mount_of 1m
run_once init 'lower FSDP_STAGING_BYTES'
expect_refused "$ranks" "$shm"
expect_refused "$ranks" 'where [0-9]+ are free'
expect_empty "$shm"
echo "fsdp_init is refused in 1 MiB"

mount_of 64m
run buffer
expect_refused $((2 * ranks)) "$shm"
expect_refused $((2 * ranks)) 'where [0-9]+ are free'
expect_refused $((2 * ranks)) 'ask for less in symmetric buffers'
expect_refused 0 FSDP_STAGING_BYTES
expect_empty "$shm"
echo "a buffer of 1 GiB is refused in 64 MiB"

run run
expect_empty "$shm"
echo "a run leaves nothing"

# All ranks and mpiexec itself are killed, so that nobody can clean up.
probe wait &
launcher=$!
while true; do
    mapfile -t pids < <(said_by_all '^ready: ' | sed 's/^ready: process //')
    [[ ${#pids[@]} -eq $ranks ]] && break
    kill -0 "$launcher" 2>/dev/null || fail "shm_probe wait ended by itself"
    sleep 0.1 # for the ranks, however long they take
done
kill -KILL "${pids[@]}"
wait "$launcher" || true
expect_empty "$shm"
echo "a run that is killed leaves nothing"
