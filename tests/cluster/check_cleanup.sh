#!/usr/bin/env bash
# Clusters leave nothing behind, however what runs on them ends, and do not touch each other.
#
#   check_cleanup.sh PROBE
#
# To see all that is left, and nothing of others, this runs in process and mount namespaces of its own, with an empty
# /tmp, /dev/shm and list of network namespaces. What hosts have left they say themselves.
set -euo pipefail

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")

if [[ ${1-} != --contained ]]; then
    "$here/cluster.sh" with --hosts 1 -- true # exits with 77 where this cannot work
    exec unshare --mount --pid --fork --kill-child --mount-proc "$here/check_cleanup.sh" --contained "$1"
fi

# As init of its namespace it would ignore them.
trap 'exit 130' INT
trap 'exit 143' TERM

# All might lie in /tmp.
mkdir -p /run/netns /run/fsdp-cluster
mount -t tmpfs tmpfs /mnt
cp "$here/cluster.sh" "$here/host.py" /mnt
cp "$2" /mnt/probe
for folder in /tmp /dev/shm /run/netns /run/fsdp-cluster; do
    mount -t tmpfs tmpfs "$folder"
done
cd /mnt # where this was may be in /tmp too
cluster=/mnt/cluster.sh
log=/mnt/log
unset FSDP_CLUSTER_ID TMPDIR

fail() {
    echo "FAILED: $1"
    cat "$log"
    exit 1
}

processes() {
    local list
    list=$(ps -e -o stat=,args=) # and no pipe yet, whose other end would be in the list by chance
    awk '$1 !~ /^Z/ { $1 = ""; print }' <<<"$list" | sort
}

everything() {
    ip netns list
    ls -A /tmp /dev/shm /run/netns /run/fsdp-cluster
    mount | sort
    ip link
    processes
}

hosts() {
    "$cluster" left || true
    processes
}

# unchanged hosts|processes|everything WHAT: as it was when the hosts had just come up, or before that. What was killed may
# take a moment to go. An mpirun that is killed leaves files on its hosts.
unchanged() {
    local now end=$((SECONDS + 60 * ${TEST_TIME_FACTOR:-1}))
    while ((SECONDS < end)); do
        now=$("$1")
        if [[ $now == "${before[$1]}" ]]; then
            echo "$2: nothing is left"
            return
        fi
        sleep 0.1
    done
    diff <(echo "${before[$1]}") <(echo "$now") || true
    fail "$2: something is left"
}

# start ARGUMENT...: cluster.sh in the background, until its ranks hang; sets pid. Bash would have it ignore INT.
start() {
    : >"$log"
    env --default-signal=INT "$cluster" "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    until grep -q '^ready' "$log"; do
        kill -0 "$pid" 2>/dev/null || fail "'$*' ended by itself"
        sleep 0.05 # for the ranks, however long it takes
    done
}

# ended STATUS WHAT: how `pid` has ended
ended() {
    local status=0
    wait "$pid" 2>/dev/null || status=$?
    [[ $1 == failure && $status -ne 0 || $1 == "$status" ]] || fail "$2: status $status, not $1"
}

networks() {
    ip netns list | grep -c "^$1-" || true
}

by_hand() {
    "$cluster" up --hosts 2 --rate 10gbit
    [[ $(networks fsdp) == 3 ]] || fail "up made $(networks fsdp) namespaces, not 3"
    before[hosts]=$(hosts)
    before[processes]=$(processes)
    "$cluster" run 2x1 /mnt/probe nodes </dev/null
    "$cluster" run 2x1 /mnt/probe fail </dev/null >"$log" 2>&1 && fail "run hid the failure of a program"
    unchanged hosts "a program that fails on one rank"

    start run 2x2 /mnt/probe hang
    kill -KILL "$(pgrep -f '^/mnt/probe hang' | tail -n 1)"
    ended failure "SIGKILL of a rank"
    unchanged hosts "SIGKILL of a rank"

    start run 2x2 /mnt/probe hang
    kill -TERM "$pid"
    ended 143 "SIGTERM of run"
    ! grep -E 'Killed|Traceback' "$log" || fail "SIGTERM of run: nobody should talk about it"
    unchanged processes "SIGTERM of run"

    start run 2x2 /mnt/probe hang
    kill -KILL "$pid"
    ended 137 "SIGKILL of run"
    unchanged processes "SIGKILL of run"

    start run 2x2 /mnt/probe hang
    "$cluster" down
    wait "$pid" 2>/dev/null || true # Open MPI 5 takes its lost hosts for a success
    unchanged everything "up, runs that end and are ended, down"
    "$cluster" down
}

# interrupted SIGNAL STATUS
interrupted() {
    start with --hosts 2 --rate 10gbit -- "$cluster" run 2x2 /mnt/probe hang
    kill "-$1" "$pid"
    ended "$2" "SIG$1 of with"
    unchanged everything "SIG$1 of with"
}

a_command_that_leaves_a_daemon() {
    "$cluster" with --hosts 1 --rate 10gbit -- bash -c 'setsid sleep 1000 & exit 5' &
    pid=$!
    ended 5 "a command that leaves a daemon"
    unchanged everything "a command that leaves a daemon"
}

two_at_once() {
    start with --hosts 2 --rate 10gbit -- "$cluster" run 2x1 /mnt/probe hang
    "$cluster" up --hosts 2 --rate 10gbit
    "$cluster" run 2x1 /mnt/probe nodes </dev/null
    "$cluster" down
    [[ $(networks "fsdp-$pid") == 3 ]] || fail "down took hosts of another cluster"
    [[ $(pgrep -fc '^/mnt/probe hang') == 2 ]] || fail "down ended processes of another cluster"
    kill -TERM "$pid"
    ended 143 "SIGTERM of the other cluster"
    unchanged everything "two clusters at once"
}

# skips WHAT REGEX COMMAND...: exits with 77 and says why
skips() {
    local what=$1 regex=$2 status=0
    shift 2
    "$@" >"$log" 2>&1 || status=$?
    ((status == 77)) || fail "$what: status $status, not 77"
    grep -E -- "$regex" "$log" || fail "$what: not the reason"
    unchanged everything "$what"
}

# A kernel that refuses is played by a tool that fails.
skips_with_a_reason() {
    local tool
    skips "a user who is not root" '^skipped: virtual hosts need root' \
        setpriv --reuid 65534 --clear-groups "$cluster" with -- true
    mkdir /mnt/without /mnt/refused
    for tool in bash realpath ip unshare nsenter setsid setpriv hostname mount pgrep ps id awk stat rm rmdir; do
        ln -s "$(command -v "$tool")" "/mnt/without/$tool"
    done
    skips "no tc" "^skipped: there is no 'tc'" env PATH=/mnt/without "$cluster" with -- true
    printf '#!/bin/sh\necho refused >&2\nexit 1\n' >/mnt/refused/tc
    chmod +x /mnt/refused/tc
    skips "a kernel without tbf" '^skipped: no token bucket filter .* says: refused$' \
        env PATH="/mnt/refused:$PATH" "$cluster" with -- true
}

: >"$log"
declare -A before=([everything]=$(everything))
by_hand
interrupted TERM 143
interrupted INT 130
interrupted HUP 129
a_command_that_leaves_a_daemon
two_at_once
skips_with_a_reason
