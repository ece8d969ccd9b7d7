#!/usr/bin/env bash
# The same training on any number of ranks, and bitwise the same under both strategies and in two runs.
#
#   check_gpt_exact.sh "RANKS..." PROGRAM DATA MPIEXEC NUMPROC_FLAG [MPIEXEC_FLAG]...
#
# Losses may differ by 1e-6 between rank counts, relative to those of the first count.
set -euo pipefail

read -ra counts <<<"$1"
program=$2 data=$3 mpiexec=$4 numproc=$5
shift 5

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# train RANKS STRATEGY FILE MPIEXEC_FLAG...: leaves the exact lines of a run in FILE.
train() {
    local ranks=$1 strategy=$2 file=$3
    shift 3
    "$mpiexec" "$numproc" "$ranks" "$@" "$program" --data "$data" --layers 2 --heads 2 --width 48 --context 40 \
        --batch 24 --steps 20 --val-batches 1 --sample 0 --exact --strategy "$strategy" >"$folder/all" </dev/null
    grep '^exact ' "$folder/all" >"$file"
    if (($(grep -c '^exact step ' "$file") != 20)) || ! grep -q '^exact parameters [0-9a-f]\{16\}$' "$file"; then
        echo "$ranks ranks, $strategy: 20 losses and a hash were expected, not"
        cat "$folder/all"
        exit 1
    fi
}

# same WHAT FILE FILE
same() {
    cmp -s "$2" "$3" && return
    echo "$1 differ:"
    diff "$2" "$3" || true
    exit 1
}

for n in "${counts[@]}"; do
    train "$n" full_shard "$folder/full.$n" "$@"
    train "$n" full_shard "$folder/again" "$@"
    same "two runs on $n ranks" "$folder/full.$n" "$folder/again"
    train "$n" no_shard "$folder/none" "$@"
    same "FULL_SHARD and NO_SHARD on $n ranks" "$folder/full.$n" "$folder/none"
    echo "$n ranks: bitwise the same in two runs and under NO_SHARD"
done

# Lines are "exact step 3 loss 0x1.4p+2 = 5.012345678901".
for n in "${counts[@]:1}"; do
    paste <(grep step "$folder/full.${counts[0]}") <(grep step "$folder/full.$n") |
        awk -v n="$n" '{ d = $14 / $7 - 1; if (d < 0) d = -d; if (d > most) most = d }
            END { printf "%d ranks: losses differ by at most %.1e\n", n, most; exit !(NR == 20 && most <= 1e-6) }'
done
