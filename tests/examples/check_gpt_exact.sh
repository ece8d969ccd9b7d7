#!/usr/bin/env bash
# The same training on any number of ranks, and bitwise the same under every strategy and in two runs.
#
#   check_gpt_exact.sh "RANKS..." PROGRAM DATA MPIEXEC NUMPROC_FLAG [MPIEXEC_FLAG]...
#
# Losses may differ by 1e-6 between rank counts, relative to those of the first count.
set -euo pipefail

read -ra counts <<<"$1"
program=$2 data=$3 mpiexec=$4 numproc=$5
shift 5
flags=("$@")
# shellcheck source=tests/examples/gpt_runs.sh
. "$(dirname "$0")/gpt_runs.sh"
small=(--layers 2 --heads 2 --width 48 --context 40 --batch 24)

for n in "${counts[@]}"; do
    train "$folder/full.$n" "$n" "${small[@]}" --strategy full_shard
    train "$folder/again" "$n" "${small[@]}" --strategy full_shard
    same "two runs on $n ranks" "$folder/full.$n" "$folder/again"
    for strategy in shard_grad_op shard_optim no_shard hybrid_shard hybrid_shard_zero2; do
        train "$folder/other" "$n" "${small[@]}" --strategy $strategy
        same "full_shard and $strategy on $n ranks" "$folder/full.$n" "$folder/other"
    done
    echo "$n ranks: bitwise the same in two runs and under every strategy"
done

for n in "${counts[@]:1}"; do
    near "$n ranks" "$folder/full.${counts[0]}" "$folder/full.$n" 1e-6
done

# Ranks that cannot share a batch equally have one sequence more or less, and count for as much.
for n in "${counts[@]}"; do
    train "$folder/odd.$n" "$n" "${small[@]}" --batch 29
    near "$n ranks, a batch of 29" "$folder/odd.${counts[0]}" "$folder/odd.$n" 1e-6
done
