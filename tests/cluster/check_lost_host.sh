#!/usr/bin/env bash
# A host goes while a model trains whose states are cached. On what takes its place, with nothing in its memory, the same command
# resumes behind the last save, from the copies that the next host has: what it has learned at the end is, byte for byte, that of a
# run that was left alone. Nothing is left in the memory of any host. Of two hosts that are partners the last save is left.
#
#   check_lost_host.sh PROGRAM DATA
#
# On a cluster of four hosts that is up. PROGRAM is 03_gpt.
set -euo pipefail

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
# shellcheck source=tests/support/check.sh
. "$here/../support/check.sh"

program=$1 data=$2
log=$folder/log
last=40
export FSDP_CHECKPOINT_CACHE=/dev/shm

# train FOLDER: in the background, into the log
train() {
    : >"$log"
    "$here/cluster.sh" run 4x2 "$program" --data "$data" --layers 2 --heads 2 --width 48 --context 40 --batch 24 --sample 0 \
        --val-batches 1 --steps $last --interval 1 --checkpoint "$folder/$1" --every $((2 * last)) --cache 2 \
        "${@:2}" >"$log" 2>&1 </dev/null &
    job=$!
}

finish() {
    wait $job || fail "the run in $1 ended with status $?"
}

# reach STEP
reach() {
    until grep -aqE "^step +$1 " "$log"; do
        kill -0 $job 2>/dev/null || fail "it ended before step $1"
        sleep 0.05 # for the report, however long it takes
    done
}

# lose FOLDER HOST...: while step 20 or a later one is under way
lose() {
    local host
    FSDP_TIMEOUT_S=20 train "$1"
    reach 20
    for host in "${@:2}"; do "$here/cluster.sh" kill "$host"; done
    for ((i = 0; i < 1200; i++)); do # mpirun itself may wait for the host
        kill -0 $job 2>/dev/null || break
        sleep 0.05
    done
    kill -TERM $job 2>/dev/null || true
    wait $job 2>/dev/null && fail "the run that has lost a host ended well"
    for host in "${@:2}"; do "$here/cluster.sh" mend "$host"; done
}

resumed_at() {
    sed -nE 's/^resumed .*: step ([0-9]+),.*/\1/p' "$log"
}

left() {
    for host in 0 1 2 3; do
        "$here/cluster.sh" enter $host ls /dev/shm </dev/null | sed "s/^/host $host: /"
    done
}

FSDP_TIMEOUT_S=100 train alone
finish alone
[[ -z $(left) ]] || fail "left in memory: $(left)"

lose lost 2
left | grep -q 'host 3: fsdp-cache-' || fail "there is no cache on host 3"
FSDP_TIMEOUT_S=100 train lost
finish lost
step=$(resumed_at)
((step >= 18)) || fail "resumed at step '$step'"
cmp "$folder/alone/step-0000000$last/model.safetensors" "$folder/lost/step-0000000$last/model.safetensors"
cmp "$folder/alone/step-0000000$last/optimizer.safetensors" "$folder/lost/step-0000000$last/optimizer.safetensors"
[[ -z $(left) ]] || fail "left in memory: $(left)"
echo "a lost host: resumed at step $step, and the same bytes at step $last"

lose both 1 2 # 2 has the copies of 1
FSDP_TIMEOUT_S=100 train both
finish both
grep -aq 'is cached, but not whole' "$log" || fail "that it is not whole is not said"
[[ -z $(resumed_at) ]] || fail "resumed at step $(resumed_at)"
cmp "$folder/alone/step-0000000$last/model.safetensors" "$folder/both/step-0000000$last/model.safetensors"
echo "two partners: begun anew, and said so"
