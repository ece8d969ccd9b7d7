#!/usr/bin/env bash
# A host is one host to all that runs on it, whoever started it; links are cut and mended, hosts killed and started again, and
# what is left on them is listed. On a cluster of three hosts that is up:
#
#   check_hosts.sh
# shellcheck disable=SC2016 # what is in single quotes is for shells on hosts
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"

cluster=$(dirname "$(realpath "$0")")/cluster.sh
name=$FSDP_CLUSTER_ID-host

# on HOST CODE...: bash code on a host, as `enter` has it
on() {
    "$cluster" enter "$1" bash -c "${@:2}" </dev/null
}

# from HOST TO CODE: bash code on another host, as mpirun has it
from() {
    "$cluster" enter "$1" "$cluster" agent "$name$2" "$3" </dev/null
}

# says EXPECTED WHAT COMMAND...
says() {
    local expected=$1 what=$2 found
    shift 2
    found=$("$@" 2>"$folder/err") || true
    [[ $found == "$expected" ]] || fail "$what: expected '$expected', found '$found'"
    echo "$what: so it is"
}

# ends STATUS WHAT COMMAND...
ends() {
    local expected=$1 what=$2 status=0
    shift 2
    "$@" >"$folder/out" 2>"$folder/err" || status=$?
    ((status == expected)) || fail "$what: status $status, not $expected"
    echo "$what: status $status"
}

namespaces='for kind in ipc mnt net pid uts; do readlink /proc/self/ns/$kind; done; stat -c %d /dev/shm'
own=$(on 1 "$namespaces")
says "$own" "two commands share all namespaces and /dev/shm" on 1 "$namespaces"
says "$own" "so does what another host starts" from 0 1 "$namespaces"
[[ $(on 2 "$namespaces" | sort - <(echo "$own") | uniq -d | wc -l) == 0 ]] || fail "hosts share something"
[[ $(eval "$namespaces" | sort - <(echo "$own") | uniq -d | wc -l) == 0 ]] || fail "a host shares something with the machine"
says "a b|$folder" "words and the folder are kept" "$cluster" enter "${name}1" bash -c "cd '$folder'; "'echo "$1|$PWD"' bash "a b"
says "$PWD $(umask) /dev/shm" "so are folder and umask of the caller" on 1 'echo "$PWD $(umask) $TMPDIR"'
says "unset" "the cluster's own variables are not handed on" on 1 'echo "${FSDP_CLUSTER_ID-unset}"'
says "given" "input is" bash -c "echo given | '$cluster' enter 1 cat"
says "" "no file of the way in stays open" on 1 'ls /proc/self/fd | grep -vx "[0-3]"'
for i in 0 1 2; do
    cores=$(python3 -c "import os; cores = sorted(os.sched_getaffinity(0)); print({*cores[$i % len(cores)::3]})")
    says "$cores" "host $i has cores of its own" on $i 'python3 -c "import os; print(os.sched_getaffinity(0))"'
done
ends 5 "the status of a command" on 1 'exit 5'
ends 143 "a command that dies of SIGTERM" on 1 'kill $$'
ends 127 "a command that is not there" "$cluster" enter 1 no_such_command
grep -q "cannot start 'no_such_command' in $PWD: No such file" "$folder/err" || fail "what is not there"

ends 0 "nothing is left at first" "$cluster" left
on 1 'setsid sleep 1000 & touch /dev/shm/kept; mkdir /dev/shm/folder'
on 2 'ipcmk -M 4096 >/dev/null'
ends 1 "a daemon, a file, a folder and System V memory are left" "$cluster" left
[[ $(sed "s/^$name//; s/process [0-9]*/process/; s/shm [0-9]*/shm/" "$folder/out") == \
"1: file /dev/shm/kept
1: folder /dev/shm/folder
1: process sleep 1000
2: System V shm"* ]] || fail "the list"
ends 0 "and none on another host" "$cluster" left 0
says "sleep" "another command sees the daemon" on 1 'pgrep -l sleep | cut -d " " -f 2'

# enter_and HOW: a command on host 1 whose caller gets a signal; ended holds its status
enter_and() {
    rm -f "$folder/began" "$folder/told"
    "$cluster" enter 1 bash -c 'trap "touch $0/told" USR1; setsid sleep 2000 & touch "$0/began"; while :; do sleep 0.05; done' \
        "$folder" </dev/null &
    local caller=$!
    until [[ -e $folder/began ]]; do sleep 0.05; done
    kill -USR1 "$caller"
    until [[ -e $folder/told ]]; do sleep 0.05; done # SIGUSR1 has been handed on
    kill "-$1" "$caller"
    ended=0
    wait "$caller" 2>/dev/null || ended=$?
    until ! on 1 'pgrep -f "sleep 2000" | grep -v "^$$\$"' >/dev/null; do sleep 0.05; done # with all that it has started
    echo "SIG$1 of the caller: SIGUSR1 was handed on, status $ended, nothing is left"
}
enter_and TERM
((ended == 143)) || fail "SIGTERM of the caller: status $ended"
enter_and KILL
says "sleep" "the daemon is still there" on 1 'pgrep -l sleep | cut -d " " -f 2'

"$cluster" cut 1
ends 255 "a host whose link is cut cannot be reached" from 0 1 true
grep -q 'host.py: cannot reach 10\.77\.0\.2: ' "$folder/err" || fail "who cannot be reached"
ends 0 "but runs on" on 1 'pgrep -x sleep'
"$cluster" mend 1
ends 0 "a mended one can be reached" from 0 1 'pgrep -x sleep'

"$cluster" enter 1 sleep 3000 </dev/null 2>/dev/null &
waiting=$!
until on 1 'pgrep -fx "sleep 3000"' >/dev/null; do sleep 0.05; done
"$cluster" kill 1
ends 137 "a command on a host that is killed" wait "$waiting"
ends 1 "nothing can be started on it" on 1 true
grep -q "^host.py: the host is down" "$folder/err" || fail "what is down"
ends 255 "nor reached" from 0 1 true
ends 0 "nothing is left on it" "$cluster" left 1
"$cluster" mend 1
ends 0 "it comes back empty" "$cluster" left 1
ends 0 "and can be reached" from 0 1 true
ends 1 "a host that there is not" "$cluster" cut 3
ends 1 "nor is the switch one" "$cluster" kill "$FSDP_CLUSTER_ID-switch"
ends 2 "a host is missing" "$cluster" mend
