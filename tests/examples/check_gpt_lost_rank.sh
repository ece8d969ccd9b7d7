#!/usr/bin/env bash
# A rank that is killed, or stops without dying, in the middle of training: the job ends, and says why.
#
#   check_gpt_lost_rank.sh PROGRAM DATA MPIEXEC_AND_ITS_ARGUMENTS...
set -euo pipefail

program=$1 data=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export FSDP_TIMEOUT_S=2

# The ranks are told apart from others on the machine by this name of the program.
ln -s "$program" "$folder/ranks"

fail() {
    echo "$1"
    cat "$folder/log"
    exit 1
}

# lose SIGNAL MPIEXEC...: trains without end, sends SIGNAL to the last rank after the first report, waits for the end.
lose() {
    local signal=$1 victim status=0
    shift
    : >"$folder/log" # of this job, not of the one before
    timeout 300 "$@" "$folder/ranks" --data "$data" --layers 2 --heads 2 --width 48 --context 40 --batch 24 \
        --steps 100000000 --interval 5 >"$folder/log" 2>&1 </dev/null &
    until grep -q '^step ' "$folder/log"; do
        kill -0 $! 2>/dev/null || fail "the training ended by itself"
        sleep 0.1 # for the report, however long it takes
    done
    victim=$(pgrep -f "^$folder/ranks" | tail -n 1)
    kill "-$signal" "$victim"
    wait $! || status=$?
    kill -KILL "$victim" 2>/dev/null || true
    ((status != 0 && status != 124)) || fail "after SIG$signal the job ended with status $status"
    echo "SIG$signal: the job ended with status $status"
}

lose KILL "$@"
lose STOP "$@"
grep 'has not ended within FSDP_TIMEOUT_S=2 seconds' "$folder/log" || fail "no rank said what it was waiting for"
