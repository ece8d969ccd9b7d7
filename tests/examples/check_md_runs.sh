#!/usr/bin/env bash
# 06_molecular_dynamics gives the same bits in two runs and under two strategies. Killed in the middle, it ends with the bits of a run that
# was not; on another number of ranks simulation and training go on too. On a signal it saves and ends, and resumes.
#
#   check_md_runs.sh RANKS OTHER_RANKS PROGRAM MPIEXEC NUMPROC_FLAG [MPIEXEC_FLAG]...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"
# shellcheck source=tests/examples/exact_lines.sh
. "$(dirname "$0")/exact_lines.sh"

ranks=$1 others=$2 program=$3 mpiexec=$4 numproc=$5
shift 5
flags=("$@")
frames=40
options=(--cells 4 --equilibrate 40 --interval 5 --updates 4 --batches 3 --warmup 8 --test-frames 2 --drive 20 --exact --progress off)

# run RANKS OPTION...: leaves what it prints in out
run() {
    local n=$1
    shift
    "$mpiexec" "$numproc" "$n" ${flags[@]+"${flags[@]}"} "$program" "${options[@]}" "$@" >"$folder/out" 2>&1 </dev/null ||
        fail "$n ranks, $*"
}

# exact RANKS FILE OPTION...: the exact lines of a run of all frames
exact() {
    run "$1" --frames $frames "${@:3}"
    keep_exact "$1 ranks" $frames "$folder/out" "$2"
}

# start STOP_AT OPTION...: a run in the background, whose ranks leave their process numbers in pids/; returns behind that frame.
start() {
    local at=$1
    shift
    rm -rf "$folder/pids" && mkdir "$folder/pids"
    # shellcheck disable=SC2016 # expanded by the ranks
    "$mpiexec" "$numproc" "$ranks" ${flags[@]+"${flags[@]}"} bash -c 'touch "$0/$$" && exec "$@"' "$folder/pids" \
        "$program" "${options[@]}" "$@" >"$folder/out" 2>&1 </dev/null &
    job=$!
    until grep -qs "^exact step $at " "$folder/out"; do
        kill -0 "$job" 2>/dev/null || fail "a run has ended by itself"
        sleep 0.02
    done
}

one_rank() {
    local pids=("$folder/pids"/*)
    basename "${pids[-1]}"
}

# what is behind the frame that was resumed: losses, atoms, parameters, forces and energies
behind() {
    sed -n "/^exact step $(($1 + 1)) /,\$p" "$2" >"$3"
    [[ -s $3 ]] || sed '/^exact step/d' "$2" >"$3"
}

exact "$ranks" "$folder/first"
exact "$ranks" "$folder/again"
same "two runs" "$folder/first" "$folder/again"
exact "$ranks" "$folder/again" --strategy no_shard
same "FULL_SHARD and NO_SHARD" "$folder/first" "$folder/again"
exact "$others" "$folder/others"
near "$others instead of $ranks ranks" "$folder/first" "$folder/others" 1e-3

exact "$ranks" "$folder/saved" --checkpoint "$folder/whole" --every 4
killed=""
while [[ -z $killed ]]; do
    rm -rf "$folder/half"
    start 6 --frames $frames --checkpoint "$folder/half" --every 4
    kill -KILL "$(one_rank)" 2>/dev/null || true
    wait "$job" || killed=yes # else it was faster than this script
done
latest=$(cat "$folder/half/latest")
step=$((10#${latest#step-}))
((step < frames)) || fail "the run that was killed had ended"
cp -r "$folder/half" "$folder/half-too"

run "$ranks" --frames $frames --checkpoint "$folder/half" --every 4
grep -q "^resumed .*: step $step, saved by $ranks ranks" "$folder/out" || fail "nothing was resumed"
grep '^exact ' "$folder/out" >"$folder/rest"
behind "$step" "$folder/saved" "$folder/expected"
same "a run, and what goes on from step $step" "$folder/expected" "$folder/rest"

run "$others" --frames $frames --checkpoint "$folder/half-too" --every 4
grep -q "^resumed .*: step $step, saved by $ranks ranks" "$folder/out" || fail "$others ranks have resumed nothing"
grep '^exact ' "$folder/out" >"$folder/rest"
near "going on with $others ranks" "$folder/expected" "$folder/rest" 1e-3

start 3 --frames 1000000 --checkpoint "$folder/stopped"
kill -USR1 "$(one_rank)"
wait "$job" || true
grep -q "^stopped by signal 10; saved in .*stopped; the same command resumes there" "$folder/out" || fail "a signal did not stop it"
latest=$(cat "$folder/stopped/latest")
start $((10#${latest#step-} + 2)) --frames 1000000 --checkpoint "$folder/stopped"
kill -USR1 "$(one_rank)"
wait "$job" || true
grep -q "^resumed .*$latest: step" "$folder/out" || fail "what was stopped was not resumed"
echo "$ranks ranks, killed behind frame $step: the same bits; $others go on as well"
