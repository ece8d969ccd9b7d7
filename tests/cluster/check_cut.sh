#!/usr/bin/env bash
# The link of one of three hosts is cut while a model trains: every message of a time-out names that host and ranks on it.
#
#   check_cut.sh PROGRAM DATA
#
# On a cluster that is up. PROGRAM is 03_gpt.
set -euo pipefail

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
# shellcheck source=tests/support/check.sh
. "$here/../support/check.sh"

program=$1 data=$2
log=$folder/log
verdicts=$folder/verdicts
cut=$FSDP_CLUSTER_ID-host2

# What messages of a time-out say of whom they wait for.
keep_verdicts() {
    sed -En 's/.*\[rank [0-9]+\].* FSDP_TIMEOUT_S=[0-9]+ seconds[^:]*: ([^;]*).*/\1/p' "$log" >"$verdicts"
}

# train_until_cut SECONDS: with so much patience. False where a rank has lost it before: the machine is at work.
train_until_cut() {
    export FSDP_TIMEOUT_S=$1
    "$here/cluster.sh" mend 2
    : >"$log"
    "$here/cluster.sh" run 3x2 "$program" --data "$data" --layers 2 --heads 2 --width 48 --context 40 --batch 24 \
        --steps 100000000 --interval 2 >"$log" 2>&1 </dev/null &
    job=$!
    until grep -aq '^step ' "$log"; do
        kill -0 $job 2>/dev/null || break
        sleep 0.1 # for the report, however long it takes
    done
    keep_verdicts
    [[ ! -s $verdicts ]] || return 1
    kill -0 $job 2>/dev/null || fail "the training ended by itself"
    "$here/cluster.sh" cut 2
}

patience=4
until train_until_cut $patience; do
    wait $job || true
    patience=$((4 * patience))
    ((patience < 200)) || fail "no rank has as much patience as this machine takes"
done
until keep_verdicts && [[ -s $verdicts ]]; do
    kill -0 $job 2>/dev/null || fail "the job ended, and nobody has said why"
    sleep 0.1 # for the time-out, however long it takes
done
kill -TERM $job 2>/dev/null || true # mpirun itself may wait for the host
wait $job || true
keep_verdicts
! grep -vxE "ranks? [45](, 5)? on $cut (does|do) not answer" "$verdicts" || fail "what is named is not on $cut"
echo "$(wc -l <"$verdicts") messages: $(sort -u "$verdicts" | head -n 1)"
