#!/usr/bin/env bash
# A run that goes on from a checkpoint, in the middle of an epoch or of a schedule, ends with the bits of the run that wrote it; on
# another number of ranks it goes on too, and says who saved. Another training is refused, and is not begun.
#
#   check_resume.sh RANKS OTHER_RANKS STEP PROGRAM MPIEXEC NUMPROC_FLAG [MPIEXEC_FLAG]... -- OPTION...
#
# STEP is one that --every 3 saves.
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"

ranks=$1 others=$2 step=step-$(printf %09d "$3") program=$4 mpiexec=$5 numproc=$6
shift 6
flags=()
while [[ $1 != -- ]]; do
    flags+=("$1")
    shift
done
shift
options=("$@")

# run RANKS OPTION...: leaves what it prints in out
run() {
    local n=$1
    shift
    "$mpiexec" "$numproc" "$n" ${flags[@]+"${flags[@]}"} "$program" "${options[@]}" --exact --progress off "$@" \
        >"$folder/out" 2>&1 </dev/null
}

weights() {
    grep '^exact parameters' "$folder/out" || fail "a run has not ended"
}

resumed() {
    grep -q "^resumed .*$1: step $2, saved by $ranks rank" "$folder/out" || fail "nothing was resumed"
}

run "$ranks" || fail "the run without checkpoints"
expected=$(weights)
run "$ranks" --checkpoint "$folder/all" --every 3 --keep 0 || fail "the run that saves"
[[ $(weights) == "$expected" ]] || fail "saving has changed the result"

for how in "" --async "--save-dtype bf16"; do
    rm -rf "$folder/half" && mkdir "$folder/half"
    # shellcheck disable=SC2086 # none or several words
    run "$ranks" --checkpoint "$folder/all$how" --every 3 --keep 0 $how || fail "the run that saves with $how"
    # shellcheck disable=SC2086
    run "$ranks" --checkpoint "$folder/half" --every 3 --resume "$folder/all$how/$step" $how || fail "going on with $how"
    resumed "$step" "$((10#${step#step-}))"
    [[ $(weights) == "$expected" ]] || fail "going on with '$how' ends elsewhere"
done

run "$ranks" --checkpoint "$folder/half" || fail "what has ended is not begun again"
[[ $(weights) == "$expected" ]] || fail "what had ended has changed"

run "$others" --checkpoint "$folder/other" --resume "$folder/all/$step" || fail "$others ranks"
resumed "$step" "$((10#${step#step-}))"

! run "$ranks" --checkpoint "$folder/all" --seed 99 || fail "another training was not refused"
grep -q 'use the same options, --resume never, or another folder' "$folder/out" || fail "why it was refused is not said"
! run "$ranks" --checkpoint "$folder/half" --resume "$folder/nowhere" || fail "a path that is not there was not refused"
echo "$ranks ranks: the same bits with and without an interruption; $others go on as well"
