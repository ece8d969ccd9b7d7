#!/usr/bin/env bash
# A rank of 03_gpt on this machine is killed: fsdp-run names it, and the run ends with the weights of one in which nothing happened.
#
#   check_killed_rank.sh FSDP_RUN GPT DATA RANKS MPIEXEC_AND_ITS_ARGUMENTS...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../../support/check.sh"

run=$1 program=$2 data=$3 ranks=$4
shift 4
unset SLURM_JOB_NODELIST PBS_NODEFILE LSB_DJOB_HOSTFILE FSDP_RECORD_DIR
export OMPI_MCA_odls_base_sigkill_timeout=3 # ranks may write their records, as without the setting of the tests
ln -s "$program" "$folder/ranks" # by this name they are told apart from others on the machine

train() { # FOLDER
    timeout "$((300 * ${TEST_TIME_FACTOR:-1}))" "$run" --grace 20 --checkpoint "$folder/$1" -- "${launcher[@]}" "$folder/ranks" --data "$data" --layers 1 \
        --heads 2 --width 32 --context 32 --batch 25 --val-batches 1 --sample 0 --progress off --steps 400 --every 10 \
        --exact --checkpoint "$folder/$1" >"$folder/$1.log" 2>&1 </dev/null
}

launcher=("$1" -n "$ranks" "${@:2}")
train good || fail "an undisturbed run: $(tail -n 5 "$folder/good.log")"
train lost &
job=$!
until [[ -e $folder/lost/latest ]]; do
    kill -0 $job 2>/dev/null || fail "it has ended before it saved: $(tail -n 5 "$folder/lost.log")"
    sleep 0.05 # for the first checkpoint, however long it takes
done
kill -KILL "$(pgrep -f "^$folder/ranks" | tail -n 1)"
wait $job || fail "the run with a rank that was killed: $(tail -n 5 "$folder/lost.log")"
[[ $(tail -n 1 "$folder/lost.log") == "fsdp-run: stop: success" ]] || fail "the last line: $(tail -n 1 "$folder/lost.log")"
grep -qE '^fsdp-run: attempt 1 ended after .*: gone: Rank [0-9]+ on ' "$folder/lost.log" ||
    fail "the verdict: $(grep '^fsdp-run' "$folder/lost.log")"
grep -qE '^fsdp-run: attempt 2: .*; from step [1-9]' "$folder/lost.log" || fail "the second attempt: $(grep '^fsdp-run' "$folder/lost.log")"
weights=$(grep '^exact parameters ' "$folder/good.log") || fail "no weights"
[[ $(grep '^exact parameters ' "$folder/lost.log") == "$weights" ]] || fail "the weights are not those of the undisturbed run"
! pgrep -f "^$folder/ranks" || fail "ranks are left"
grep '^fsdp-run: attempt 1 ended' "$folder/lost.log"
