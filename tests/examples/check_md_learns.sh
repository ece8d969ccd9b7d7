#!/usr/bin/env bash
# What 06_molecular_dynamics learns: forces, on frames behind those it was trained on, within a tenth of their size; and an energy that does
# not drift. A file in between, or frames in memory, change neither. The comparison prints its table.
#
#   check_md_learns.sh RANKS PROGRAM COMPARE MPIEXEC NUMPROC_FLAG [MPIEXEC_FLAG]...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"

ranks=$1 program=$2 compare=$3 mpiexec=$4 numproc=$5
shift 5
launch=("$mpiexec" "$numproc" "$ranks" "$@" "$program" --progress off)
short=(--cells 4 --equilibrate 45 --frames 30 --updates 4 --batches 4 --warmup 8 --drive 0)

# run OPTION...: leaves what it prints in out
run() {
    "${launch[@]}" "$@" >"$folder/out" 2>&1 </dev/null || fail "$*"
}

# at_most WHAT VALUE LIMIT
at_most() {
    [[ -n $2 ]] || fail "$1 is not printed"
    awk -v value="$2" -v limit="$3" 'BEGIN { exit !(value * value <= limit * limit) }' || fail "$1 is $2, more than $3"
    echo "$1 $2"
}

forces() {
    sed -n 's/^forces on .*, which is //p' "$folder/out"
}

run --drive 200
at_most "relative error of forces" "$(forces)" 0.10
at_most "drift of LAMMPS" "$(awk '$1 == "drift" { print $2 }' "$folder/out")" 0.002
at_most "drift of the learned potential" "$(awk '$1 == "drift" { print $3 }' "$folder/out")" 0.002

run "${short[@]}"
both=$(forces)
at_most "after little training" "$both" 0.9
run "${short[@]}" --mode train
[[ $(forces) == "$both" ]] || fail "frames that are kept give another result than $both"
run "${short[@]}" --mode dump --dump-file "$folder/dump"
# One long run is rounded otherwise than many short ones, after which the atoms take other paths: like frames, not the same.
awk -v a="$(forces)" -v b="$both" 'BEGIN { exit !(a > 0.85 * b && a < 1.15 * b) }' ||
    fail "what is learned from the file has an error of $(forces), and without it $both"
[[ ! -e $folder/dump ]] || fail "the file is still there"
run "${short[@]}" --mode md
grep -qE '^seconds +simulation [0-9.]+, training 0.000, reading 0.000; in all ' "$folder/out" || fail "--mode md"

"$compare" --repeat 1 "${launch[@]}" "${short[@]}" >"$folder/out" || fail "the comparison"
(($(grep -cE '^simulation.* [0-9.]+ of ' "$folder/out") == 2)) || fail "the comparison has no ratios"
! "$compare" --repeat 0 true 2>/dev/null || fail "0 repetitions were not refused"
