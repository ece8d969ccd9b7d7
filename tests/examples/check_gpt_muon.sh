#!/usr/bin/env bash
# 03_gpt --optimizer muon: the same bits under strategies that share the ranks alike, another result than AdamW, a loss that falls,
# and memory that is the budget's to the byte.
#
#   check_gpt_muon.sh RANKS PROGRAM DATA MPIEXEC_AND_ITS_ARGUMENTS...
set -euo pipefail

ranks=$1 program=$2 data=$3
shift 3
launch=("$@")

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "$*"
    exit 1
}

# train NAME OPTION...: leaves what a run prints in the file NAME
train() {
    local name=$1
    shift
    "${launch[@]}" "$program" --data "$data" --layers 2 --heads 2 --width 48 --context 40 --batch $((12 * ranks)) --steps 30 \
        --warmup 10 --interval 30 --val-batches 1 --sample 0 --progress off --exact "$@" >"$folder/$name" </dev/null ||
        fail "the run with $* has failed"
}

exact() {
    grep -E '^exact (step|parameters)' "$folder/$1"
}

# holds NAME: "memory held H bytes, at most P; budget B (+0.00%)", with P and B the same
holds() {
    awk '/^memory held / { seen = 1; if ($7 + 0 != $9) bad = 1 } END { exit !(seen && !bad) }' "$folder/$1" ||
        fail "$1: $(grep '^memory held' "$folder/$1")"
}

train adamw
train muon --optimizer muon
grep -q '^ranks .*, Muon for matrices' "$folder/muon" || fail "the report does not say what trains"
[[ $(exact muon) != "$(exact adamw)" ]] || fail "Muon has the bits of AdamW"
awk '/^exact step 1 / { first = $NF } /^exact step 30 / { last = $NF } END { exit !(last < first - 1) }' "$folder/muon" ||
    fail "the loss does not fall"
holds muon
for strategy in shard_grad_op no_shard; do
    train $strategy --optimizer muon --strategy $strategy
    [[ $(exact $strategy) == "$(exact muon)" ]] || fail "$strategy differs from full_shard"
    holds $strategy
done
train bf16 --optimizer muon --param-dtype bf16 --moments u8 --reduce-dtype f16
holds bf16
echo "$ranks ranks: Muon's bits are the same, and its memory is the budget's"
