#!/usr/bin/env bash
# What training in the gaps of a simulation costs, beside each alone and beside a file in between: medians of runs that alternate.
#
#   compare.sh [--repeat N] mpirun -n 2 06_molecular_dynamics [OPTION]...
set -euo pipefail

repeat=5
if [[ ${1-} == --repeat ]]; then
    repeat=${2-}
    shift 2 || true
fi
if [[ ! $repeat =~ ^[1-9][0-9]*$ ]] || (($# == 0)); then
    echo "usage: compare.sh [--repeat N] mpirun -n RANKS 06_molecular_dynamics [OPTION]..." >&2
    exit 2
fi
modes=(md train both dump)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for ((i = 1; i <= repeat; i++)); do
    for mode in "${modes[@]}"; do
        "$@" --mode "$mode" --dump-file "$folder/dump" --test-frames 0 --drive 0 --progress off >"$folder/out" </dev/null
        sed -n 's/^seconds .* in all //p' "$folder/out" >>"$folder/$mode"
    done
done

median() {
    sort -n "$folder/$1" | awk '{ v[NR] = $1 } END { printf "%.3f", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

md=$(median md) train=$(median train) both=$(median both) dump=$(median dump)
echo "seconds, medians of $repeat"
echo "simulation alone                       $md"
echo "training alone                         $train"
awk -v md="$md" -v train="$train" -v both="$both" -v dump="$dump" 'BEGIN {
    printf "simulation, training in its gaps       %.3f   %.2f of the sum of both alone\n", both, both / (md + train)
    printf "simulation with a file, then training  %.3f   %.2f of it\n", dump, dump / (md + train) }'
