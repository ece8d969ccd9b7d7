#!/usr/bin/env bash
# 07_shallow_water gives the same bits in two runs, and under FULL_SHARD and NO_SHARD; the same fields on any number of ranks, and
# losses that differ in rounding only. So does the program that has MPI alone.
#
#   check_shallow_water_exact.sh RANKS PROGRAM PLAIN MPIEXEC NUMPROC_FLAG [MPIEXEC_FLAG]...
#
# RANKS is the largest number.
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"
# shellcheck source=tests/examples/exact_lines.sh
. "$(dirname "$0")/exact_lines.sh"

most=$1 program=$2 plain=$3 mpiexec=$4 numproc=$5
shift 5
flags=("$@")

# simulate RANKS FILE PROGRAM OPTION...: leaves the exact lines of a run in FILE
simulate() {
    local ranks=$1 file=$2
    shift 2
    "$mpiexec" "$numproc" "$ranks" ${flags[@]+"${flags[@]}"} "$@" --nx 25 --ny 18 --steps 10 --updates 2 --batch 33 --width 40 \
        --layers 2 --exact --test 0 >"$folder/out" </dev/null || fail "$ranks ranks: $*"
    keep_exact "$ranks ranks: $*" 10 "$folder/out" "$file"
}

# same_fields WHAT FILE FILE
same_fields() {
    same "fields: $1" <(grep "^exact fields" "$2") <(grep "^exact fields" "$3")
}

simulate 1 "$folder/one" "$program"
for ((n = 2; n <= most; n++)); do
    simulate "$n" "$folder/here" "$program"
    simulate "$n" "$folder/again" "$program"
    same "two runs on $n ranks" "$folder/here" "$folder/again"
    near "$n ranks" "$folder/one" "$folder/here" 1e-5
    same_fields "$n ranks" "$folder/one" "$folder/here"
    simulate "$n" "$folder/none" "$program" --strategy no_shard
    same "FULL_SHARD and NO_SHARD on $n ranks" "$folder/here" "$folder/none"
    simulate "$n" "$folder/plain" "$plain"
    near "MPI alone on $n ranks" "$folder/one" "$folder/plain" 1e-5
    same_fields "MPI alone on $n ranks" "$folder/one" "$folder/plain"
done
