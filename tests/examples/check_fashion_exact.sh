#!/usr/bin/env bash
# 04_fashion_mnist gives the same losses on any number of ranks, whether these can share a batch equally or not, and in
# micro-batches; bitwise the same in two runs and under FULL_SHARD and NO_SHARD.
#
#   check_fashion_exact.sh "RANKS..." PROGRAM MPIEXEC NUMPROC_FLAG [MPIEXEC_FLAG]...
set -euo pipefail

# shellcheck source=tests/examples/fashion_files.sh
. "$(dirname "$0")/fashion_files.sh"
# shellcheck source=tests/examples/exact_lines.sh
. "$(dirname "$0")/exact_lines.sh"

read -ra counts <<<"$1"
program=$2 mpiexec=$3 numproc=$4
shift 4

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fashion_files "$folder" 107 23

# train RANKS FILE MPIEXEC_FLAG... -- OPTION...: leaves the exact lines of a run in FILE. 107 images make 5 steps of 22, 22,
# 22, 22 and 19 images per epoch.
train() {
    local ranks=$1 file=$2 flags=()
    shift 2
    while [[ $1 != -- ]]; do
        flags+=("$1")
        shift
    done
    shift
    "$mpiexec" "$numproc" "$ranks" ${flags[@]+"${flags[@]}"} "$program" --data "$folder" --epochs 2 --warmup 4 --lr 0.01 \
        --exact --progress off "$@" >"$folder/all" </dev/null
    keep_exact "$ranks ranks, $*" 10 "$folder/all" "$file"
}

for n in "${counts[@]}"; do
    for dtype in f32 bf16; do
        train "$n" "$folder/$dtype.$n" "$@" -- --batch 22 --dtype $dtype
        train "$n" "$folder/none" "$@" -- --batch 22 --dtype $dtype --strategy no_shard
        same "FULL_SHARD and NO_SHARD in $dtype on $n ranks" "$folder/$dtype.$n" "$folder/none"
    done
    train "$n" "$folder/again" "$@" -- --batch 22
    same "two runs on $n ranks" "$folder/f32.$n" "$folder/again"
    near "$n ranks" "$folder/f32.${counts[0]}" "$folder/f32.$n" 1e-5
    cmp -s "$folder/f32.$n" "$folder/bf16.$n" && {
        echo "bf16 gives what f32 gives on $n ranks"
        exit 1
    }
done

# Statistics are a micro-batch's, so that losses differ, but not by the number of ranks, most of which have none of 3 images.
train "${counts[0]}" "$folder/micro.first" "$@" -- --batch 3 --accumulate 8
train "${counts[-1]}" "$folder/micro.last" "$@" -- --batch 3 --accumulate 8
near "micro-batches of 3 on ${counts[-1]} ranks" "$folder/micro.first" "$folder/micro.last" 1e-5
