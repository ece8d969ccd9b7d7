#!/usr/bin/env bash
# 07_shallow_water has the fields of its twin in C bit for bit, and its losses within 1e-6, over 20 time steps with training.
#
#   check_shallow_water_twin.sh RANKS PROGRAM TWIN MPIEXEC NUMPROC_FLAG [MPIEXEC_FLAG]...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"
# shellcheck source=tests/examples/exact_lines.sh
. "$(dirname "$0")/exact_lines.sh"

ranks=$1 program=$2 twin=$3
launch=("$4" "$5" "$1" "${@:6}")

"${launch[@]}" "$twin" 24 20 20 2 64 32 2 0.003 7 >"$folder/out" </dev/null || fail "the twin"
keep_exact "the twin" 20 "$folder/out" "$folder/twin"
"${launch[@]}" "$program" --nx 24 --ny 20 --steps 20 --updates 2 --batch 64 --width 32 --layers 2 --lr 0.003 --seed 7 \
    --exact --test 0 >"$folder/out" </dev/null || fail "the program"
keep_exact "the program" 20 "$folder/out" "$folder/fortran"
near "the twin on $ranks ranks" "$folder/twin" "$folder/fortran" 1e-6
same "fields" <(grep "^exact fields" "$folder/twin") <(grep "^exact fields" "$folder/fortran")
