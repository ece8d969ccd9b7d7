#!/usr/bin/env bash
# Each rank in turn is stopped at random moments of training: every message of a time-out names that rank and no other.
#
#   check_gpt_stopped_rank.sh TIMES PROGRAM DATA RANKS MPIEXEC_AND_ITS_ARGUMENTS...
#
# Each rank TIMES times. FSDP_NODE_SIZE decides which ranks are a node.
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"

times=$1 program=$2 data=$3 ranks=$4
shift 4
mpiexec=("$@")
verdicts=$folder/verdicts
export FSDP_TIMEOUT_S=2

start() {
    rm -f "$folder"/process.*
    : >"$folder/log" # of this job, not of the one before
    # shellcheck disable=SC2016 # expanded by each rank
    timeout "$((120 * ${TEST_TIME_FACTOR:-1}))" "${mpiexec[@]}" bash -c '
        echo $$ >"$1/process.${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}"
        shift
        exec "$@"' bash "$folder" "$program" --data "$data" --layers 2 --heads 2 --width 48 --context 40 --batch 25 \
        --steps 100000000 --interval 5 >"$folder/log" 2>&1 </dev/null &
    job=$!
}

# Which rank says what of whom it waits for in a time-out: "0: rank 2 does not answer".
keep_verdicts() {
    sed -En 's/.*\[rank ([0-9]+)\].* FSDP_TIMEOUT_S=[0-9]+ seconds[^:]*: ([^;]*).*/\1: \2/p' "$folder/log" >"$verdicts"
}

# stop RANK: at a random moment behind the first report. False where a rank has lost its patience before: the machine is at work.
stop() {
    local victim status=0
    start
    until grep -aq '^step ' "$folder/log"; do
        kill -0 $job 2>/dev/null || break
        sleep 0.1 # for the report, however long it takes
    done
    moment=$((RANDOM % 1000))
    sleep "0.$(printf %03d $moment)" # the moment itself
    victim=$(<"$folder/process.$1")
    keep_verdicts
    if [[ -s $verdicts ]] || ! kill -STOP "$victim"; then
        wait $job || true
        return 1
    fi
    wait $job || status=$?
    kill -KILL "$victim" 2>/dev/null || true
    ((status != 0 && status != 124)) || fail "rank $1 was stopped, and the job ended with status $status"
}

check() { # RANK
    keep_verdicts
    [[ -s $verdicts ]] || fail "rank $1 was stopped after $moment ms, and nobody has said so"
    # Open MPI wakes what it ends.
    ! grep -vxE "[0-9]+: rank $1 does not answer|$1: this rank itself was stopped or late, and its peers had given up" \
        "$verdicts" || fail "rank $1 was stopped after $moment ms, and others are named"
}

for ((rank = 0; rank < ranks; rank++)); do
    for ((n = 0; n < times; n++)); do
        FSDP_TIMEOUT_S=2
        until stop $rank; do
            FSDP_TIMEOUT_S=$((4 * FSDP_TIMEOUT_S))
            ((FSDP_TIMEOUT_S < 100)) || fail "no rank has as much patience as this machine takes"
        done
        check $rank
        echo "rank $rank, stopped $moment ms behind the report: named by $(wc -l <"$verdicts") messages"
    done
done
