#!/usr/bin/env bash
# A rank that is killed, or stops without dying, in the middle of training: the job ends, and says why.
#
#   check_gpt_lost_rank.sh PROGRAM DATA MPIEXEC_AND_ITS_ARGUMENTS...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"

program=$1 data=$2
shift 2

# The ranks are told apart from others on the machine by this name of the program.
ln -s "$program" "$folder/ranks"

has_lost_patience() {
    grep "has not moved for FSDP_TIMEOUT_S=$FSDP_TIMEOUT_S seconds" "$folder/log"
}

# lose SIGNAL PATIENCE MPIEXEC...: trains without end, sends SIGNAL to the last rank after the first report, waits for the end.
# False if a rank has lost its patience before: on a machine at work, PATIENCE seconds may be short.
lose() {
    local signal=$1 victim status=0
    export FSDP_TIMEOUT_S=$2
    shift 2
    : >"$folder/log" # of this job, not of the one before
    timeout "$((500 * ${TEST_TIME_FACTOR:-1}))" "$@" "$folder/ranks" --data "$data" --layers 2 --heads 2 --width 48 --context 40 --batch 24 \
        --steps 100000000 --interval 5 >"$folder/log" 2>&1 </dev/null &
    until grep -q '^step ' "$folder/log"; do
        if ! kill -0 $! 2>/dev/null; then
            ! has_lost_patience || return
            fail "the training ended by itself"
        fi
        sleep 0.1 # for the report, however long it takes
    done
    victim=$(pgrep -f "^$folder/ranks" | tail -n 1)
    if [[ -z $victim ]] || has_lost_patience || ! kill "-$signal" "$victim"; then
        wait $! || true
        return 1
    fi
    wait $! || status=$?
    kill -KILL "$victim" 2>/dev/null || true
    ((status != 0 && status != 124)) || fail "after SIG$signal the job ended with status $status"
    echo "SIG$signal: the job ended with status $status"
}

for signal in KILL STOP; do
    patience=2
    until lose $signal $patience "$@"; do
        patience=$((4 * patience))
        ((patience < 200)) || fail "no rank has as much patience as this machine takes"
    done
done
has_lost_patience || fail "no rank said what it was waiting for"
