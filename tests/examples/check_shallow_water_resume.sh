#!/usr/bin/env bash
# 07_shallow_water stopped by a signal, or at a step, resumes: on as many ranks with the bits of the run that nobody stopped, on
# another number with its fields, and with losses that differ in rounding only. A checkpoint of another run is refused.
#
#   check_shallow_water_resume.sh RANKS PROGRAM MPIEXEC NUMPROC_FLAG [MPIEXEC_FLAG]...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"
# shellcheck source=tests/examples/exact_lines.sh
. "$(dirname "$0")/exact_lines.sh"

ranks=$1 program=$2 mpiexec=$3 numproc=$4
shift 4
flags=("$@")
options=(--nx 24 --ny 20 --updates 2 --batch 64 --width 32 --exact --test 0)

# start RANKS OPTION...: what it prints is in out
start() {
    local n=$1
    shift
    "$mpiexec" "$numproc" "$n" ${flags[@]+"${flags[@]}"} "$program" "${options[@]}" "$@" >"$folder/out" 2>&1 </dev/null
}

start "$ranks" --steps 20 || fail "the run without checkpoints"
keep_exact "the run without checkpoints" 20 "$folder/out" "$folder/whole"
grep '^exact step 1[3-9] \|^exact step 20 \|^exact [fp]' "$folder/whole" >"$folder/expected"

start "$ranks" --steps 12 --every 8 --checkpoint "$folder/run" || fail "the run of 12 steps"
cp -r "$folder/run" "$folder/other"
start "$ranks" --steps 20 --checkpoint "$folder/run" || fail "going on with $ranks ranks"
grep -q '^resumed .*: step 12$' "$folder/out" || fail "nothing was resumed"
keep_exact "going on" 8 "$folder/out" "$folder/resumed"
same "going on and not stopping" "$folder/expected" "$folder/resumed"

start "$((ranks / 2))" --steps 20 --checkpoint "$folder/other" || fail "going on with $((ranks / 2)) ranks"
grep -q '^resumed .*: step 12$' "$folder/out" || fail "nothing was resumed on other ranks"
keep_exact "going on with other ranks" 8 "$folder/out" "$folder/resumed"
near "$((ranks / 2)) ranks" "$folder/expected" "$folder/resumed" 1e-5
same "fields" <(grep "^exact fields" "$folder/expected") <(grep "^exact fields" "$folder/resumed")

status=0
start "$ranks" --steps 30 --lr 0.5 --checkpoint "$folder/run" || status=$?
((status == 1)) || fail "status $status, not 1, for the checkpoint of another run"
grep -q 'is of a run with nx 24, .*use the same options, or another folder' "$folder/out" || fail "why it was refused is not said"

# A rank is told to stop; only that makes this run save.
rm -rf "$folder/run" && mkdir "$folder/pids"
# shellcheck disable=SC2016 # expanded by the ranks
"$mpiexec" "$numproc" "$ranks" ${flags[@]+"${flags[@]}"} bash -c 'touch "$0/$$" && exec "$@"' "$folder/pids" \
    "$program" "${options[@]}" --steps 1000000 --every 1000000 --checkpoint "$folder/run" >"$folder/out" 2>&1 </dev/null &
job=$!
until grep -qs '^exact step 3 ' "$folder/out"; do
    kill -0 "$job" 2>/dev/null || fail "the run has ended by itself"
    sleep 0.05
done
pids=("$folder/pids"/*)
kill -USR1 "$(basename "${pids[0]}")"
status=0
wait "$job" || status=$?
((status == 75)) || fail "status $status, not 75, for a run that was told to stop"
last=$(grep '^exact step ' "$folder/out" | tail -n 1 | cut -d' ' -f3)
start "$((ranks - 1))" --steps "$((last + 2))" --checkpoint "$folder/run" || fail "going on after the signal"
grep -q "^resumed .*: step $last$" "$folder/out" || fail "the run that was stopped at step $last was not resumed there"
echo "$ranks ranks: stopped and resumed, the same bits; other ranks the same fields"
