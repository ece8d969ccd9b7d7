#!/usr/bin/env bash
# What the options of 03_gpt promise: prefetching changes no bit, whatever the nodes; micro-batches change rounding only;
# parameters and gradients in 16 bits, and each hook, train nearly as well, and a hook says what it has sent.
#
#   check_gpt_options.sh PART RANKS PROGRAM DATA MPIEXEC_AND_ITS_ARGUMENTS...
#
# PART is overlap, micro_batches, halves or hooks; RANKS is even.
set -euo pipefail

part=$1 ranks=$2 program=$3 data=$4
shift 4
launch=("$@")
steps=40

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "$*"
    exit 1
}

# train NAME OPTION...: leaves what a run prints in the file NAME.all and its exact lines in NAME.
train() {
    local name=$1
    shift
    "${launch[@]}" "$program" --data "$data" --layers 2 --heads 2 --width 48 --context 40 --batch 48 --steps $steps \
        --interval 10 --lr 1e-2 --val-batches 1 --sample 0 --progress off --exact "$@" \
        >"$folder/$name.all" </dev/null
    grep '^exact ' "$folder/$name.all" >"$folder/$name"
    (($(grep -c '^exact step ' "$folder/$name") == steps)) || fail "$*: $steps losses were expected"
}

# same NAME NAME
same() {
    cmp "$folder/$1" "$folder/$2" || fail "$1 and $2 differ"
    echo "$1 and $2: the same bits"
}

# near NAME NAME TOLERANCE [LEAST]: losses, of all steps; some of which differ by LEAST or more. Lines are
# "exact step 3 loss 0x1.4p+2 = 5.012345678901".
near() {
    paste <(grep step "$folder/$1") <(grep step "$folder/$2") |
        awk -v what="$1 and $2" -v tolerance="$3" -v least="${4-0}" -v steps=$steps '
            { d = $14 / $7 - 1; if (d < 0) d = -d; if (d > most) most = d }
            END { printf "%s: losses differ by at most %.1e\n", what, most
                  exit !(NR == steps && most <= tolerance && most >= least) }' ||
        fail "which is not between ${4-0} and $3"
}

# same_norm NAME NAME: the gradient's, at step 10, to 0.2%. AdamW and clipping would hide a gradient of another length.
same_norm() {
    cat "$folder/$1.all" "$folder/$2.all" |
        awk -F'gradient norm' '/^step +10 / { norm[n++] = $2 + 0 }
            END { d = norm[1] / norm[0] - 1; exit !(n == 2 && d * d <= 4e-6) }' || fail "$1 and $2 differ in gradient norm"
}

# says NAME REGEX
says() {
    grep -Eq -- "$2" "$folder/$1.all" || {
        cat "$folder/$1.all"
        fail "no line of $1 matches '$2'"
    }
}

# What a hook sends of the gradients, which are 4 bytes for each of 71680 elements on each of RANKS x 2 (RANKS - 1) / RANKS ways.
whole=$((71680 * 4 * 2 * (ranks - 1)))
# sends NAME REGEX: 1/REGEX of it
sends() {
    says "$1" "^hook [a-z0-9]+: [0-9]+ bytes on the wire per step over all ranks, 1/$2 of the $whole uncompressed$"
}

# Overlap changes when something happens, not what.
overlap() {
    local depth
    for depth in 0 2; do
        train prefetch_$depth --prefetch $depth
        same plain prefetch_$depth
    done
    FSDP_PREFETCH=99 train option_first --prefetch 1 # which would be refused
    same plain option_first

    # Other nodes, other sums; under each of them all strategies agree, where groups are the nodes.
    FSDP_NODE_SIZE=2 train pairs
    FSDP_NODE_SIZE=2 train pairs_hybrid --strategy hybrid_shard --prefetch 0
    same pairs pairs_hybrid
    train groups --strategy hybrid_shard --group-size $((ranks / 2))
    near plain groups 1e-4
}

micro_batches() {
    train micro --accumulate 4
    near plain micro 1e-4 1e-9
    same_norm plain micro
    says micro '^accumulate +4 micro-batches per step, gradients reduced after the last$'
    train micro_none --accumulate 4 --strategy no_shard
    same micro micro_none
    train micro_sync --accumulate 4 --accumulate-sync
    near plain micro_sync 1e-4 1e-9
    same_norm plain micro_sync
    says micro_sync '^accumulate .*reduced after each$'
}

halves() {
    train bf16 --param-dtype bf16
    near plain bf16 0.1 1e-6
    says bf16 '^ranks .* FULL_SHARD, f32, parameters in bf16, gradients in f32;'
    train bf16_both --param-dtype bf16 --reduce-dtype bf16 --accumulate 2
    near plain bf16_both 0.06 1e-6
    train int8_params --quantized-params
    near plain int8_params 0.05 1e-6
    says int8_params '^ranks .* FULL_SHARD, f32, parameters gathered as int8;'
    train f16 --param-dtype f16 --reduce-dtype f16 --strategy shard_grad_op
    near plain f16 0.1 1e-6
    same_norm plain f16
    says f16 '^step +40 .* loss times [0-9]+, [0-9] skipped$'
}

hooks() {
    train f16_hook --hook f16 --strategy no_shard
    near plain f16_hook 0.1 1e-6
    says f16_hook '^step +40 .* loss times [0-9]+, [0-9] skipped$'
    sends f16_hook '2[.]00'
    train bf16_hook --hook bf16 --strategy no_shard
    near plain bf16_hook 0.02 1e-6
    sends bf16_hook '2[.]00'
    train int8 --hook int8 --strategy no_shard
    near plain int8 0.05 1e-6
    sends int8 '3[.]9[0-9]'
    train rank_4 --hook powersgd --strategy no_shard
    near plain rank_4 0.3 1e-4
    sends rank_4 '7[.]25'
    train late --hook powersgd --hook-rank 1 --hook-start 30 --strategy no_shard
    head -n 30 "$folder/late" | cmp - <(head -n 30 "$folder/plain") || fail "a hook that starts late changes what comes before"
    near plain late 0.3 1e-6
    says late '^hook powersgd: .* 1/1[0-9][.][0-9]+ of the [0-9]+ uncompressed, from step 31 on$'
    train between_groups --hook int8 --strategy hybrid_shard_zero2 --group-size 2
    near plain between_groups 0.05 1e-6
    says between_groups '^hook int8: [1-9][0-9]* bytes'
}

train plain
grep -Eq '^exact step 40 loss .* = [0-3][.]' "$folder/plain" || fail "the loss does not fall: $(tail -n 2 "$folder/plain")"
"$part"
