#!/usr/bin/env bash
# 03_gpt refuses bad input: with a status of its own, one message that names the value and the remedy, nothing on standard
# output.
#
#   check_gpt_bad_input.sh PROGRAM MPIEXEC_AND_ITS_ARGUMENTS...
set -euo pipefail

program=$1
shift
launch=("$@")

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0
header=refused
speaker='03_gpt: '

# messages FILE: what the speaker says, and what ranks say in the same words only once.
messages() {
    grep "^$speaker" "$1" | sed 's/\[rank [0-9]*\] //' | if [[ $speaker == libfsdp* ]]; then sort -u; else cat; fi
}

# refuses REGEX PREFIX... -- OPTION...: runs the program behind PREFIX; REGEX must match the one message.
refuses() {
    local expected=$1 prefix=() status=0
    shift
    while [[ $1 != -- ]]; do
        prefix+=("$1")
        shift
    done
    shift
    timeout "$((120 * ${TEST_TIME_FACTOR:-1}))" "${launch[@]}" ${prefix[@]+"${prefix[@]}"} "$program" "$@" >"$folder/out" 2>"$folder/err" </dev/null ||
        status=$?
    local problem=""
    if ((status == 0 || status > 123)); then
        problem="status $status"
    elif (($(messages "$folder/err" | wc -l) != 1)); then
        problem="not one message"
    elif ! messages "$folder/err" | grep -Eq -- "$expected"; then
        problem="no message that matches '$expected'"
    elif [[ $header == refused ]] && grep -Eq '^(model|ranks|step|budget|exact) ' "$folder/out"; then
        problem="output before the message"
    else
        messages "$folder/err"
        return
    fi
    failures=$((failures + 1))
    echo "FAILED with '$*': $problem"
    cat "$folder/out" "$folder/err"
}

: >"$folder/empty"
head -c 1299 /dev/zero | tr '\0' 'a' >"$folder/short" # one byte less than 20 x (64 + 1)
head -c 100000 /dev/zero | tr '\0' 'a' >"$folder/good"
good=(--data "$folder/good" --layers 1 --heads 2 --width 32 --context 64 --batch 24 --steps 2 --sample 0)

refuses "missing'.*No such file.*give a file" -- "${good[@]}" --data "$folder/missing"
refuses "empty', which is empty; give" -- "${good[@]}" --data "$folder/empty"
refuses "not a file; give one" -- "${good[@]}" --data "$folder"
refuses "short has 1299 bytes, and --context 64 needs 1300; use" -- "${good[@]}" --data "$folder/short"
refuses "'bible' is not installed; apt-get install bible-kjv, or" env PATH="$folder" -- --steps 1 --sample 0
refuses "--heads is 3, which does not divide --width 32; choose" -- "${good[@]}" --heads 3
refuses "--layers is '0'; give a whole number from 1" -- "${good[@]}" --layers 0
refuses "--width is '-32'; give a whole number from 1" -- "${good[@]}" --width -32
refuses "--context is 'long'; give a whole number" -- "${good[@]}" --context long
refuses "--heads is ''; give a whole number" -- "${good[@]}" --heads ''
refuses "--steps is '1e3'; give a whole number" -- "${good[@]}" --steps 1e3
refuses "--batch is '99999999999999999999'; give a whole number" -- "${good[@]}" --batch 99999999999999999999
refuses "--width 1000000000 .*more parameters than.*use smaller" -- "${good[@]}" --width 1000000000
refuses "would need [0-9]+ bytes .*use more ranks, or a smaller" -- "${good[@]}" --width 1000000
refuses "--batch 12000000 .*--context 1000.*more than a matrix product can index; use" \
    -- "${good[@]}" --batch 12000000 --context 1000
refuses "--lr is 'nan'; give a number" -- "${good[@]}" --lr nan
refuses "--lr is '-1'; give a number" -- "${good[@]}" --lr -1
refuses "--min-lr is 0.5, above --lr 0.1; use" -- "${good[@]}" --lr 0.1 --min-lr 0.5
refuses "--strategy is 'zero'; use one of FULL_SHARD, NO_SHARD, SHARD_GRAD_OP, SHARD_OPTIM, HYBRID_SHARD" -- "${good[@]}" --strategy zero
refuses "--dtype is 'bf16'.*use f32" -- "${good[@]}" --dtype bf16
refuses "--param-dtype is 'int8'; use one of f32, bf16, f16" -- "${good[@]}" --param-dtype int8
refuses "--reduce-dtype is 'f64'; use one of f32, bf16, f16" -- "${good[@]}" --reduce-dtype f64
refuses "--optimizer is 'sgd'; use one of adamw, muon" -- "${good[@]}" --optimizer sgd
refuses "--optimizer muon needs whole matrices, which --quantized-params cannot gather; leave" -- "${good[@]}" --optimizer muon \
    --quantized-params
refuses "--hook is 'zip'; use one of none, bf16, f16, int8, powersgd" -- "${good[@]}" --hook zip
refuses "--hook-rank is '0'; give a whole number from 1 to 65536" -- "${good[@]}" --hook powersgd --hook-rank 0
refuses "--hook-rank is 2, and --hook int8 has no rank; use" -- "${good[@]}" --hook int8 --hook-rank 2
refuses "--prefetch is '-1'; give a whole number" -- "${good[@]}" --prefetch -1
refuses "--group-size is 'node'; give a whole number" -- "${good[@]}" --group-size node
refuses "--accumulate is '0'; give a whole number from 1" -- "${good[@]}" --accumulate 0
refuses "--accumulate is 7, which does not divide --batch [0-9]+; use a divisor of it" -- "${good[@]}" --accumulate 7
refuses "option '--colour' is unknown; --help" -- "${good[@]}" --colour
refuses "option '--colour=red' is unknown.*--help" -- "${good[@]}" --colour=red
refuses "option '-x' is unknown; --help" -- "${good[@]}" -x
refuses "--steps needs a value; --help" -- "${good[@]}" --steps
refuses "argument 'more' belongs to no option; --help" -- "${good[@]}" more
if [[ ${RANKS:-1} -gt 1 ]]; then
    refuses "--batch 1 in 1 micro-batches is less than a sequence for each of $RANKS ranks; use a larger one, or fewer ranks" -- "${good[@]}" --batch 1
fi

# A mesh that cannot be.
on_a_mesh() {
    printf '0B0\n' >"$folder/no_forward.csv"
    refuses "--tp is '0'; give a whole number from 1" -- "${good[@]}" --tp 0
    refuses "--tp 2 times --pp 1 is 2, which does not divide the 3 ranks; use divisors" -- "${good[@]}" --tp 2
    refuses "--dp 2 times --tp 1 times --pp 3 is 6, and there are 3 ranks; leave out --dp" -- "${good[@]}" --dp 2 --pp 3
    refuses "--outer is 2, which does not divide --dp 3; use a divisor" -- "${good[@]}" --outer 2
    refuses "--batch is 25, which --micro 2 times --dp 3 do not divide; use a multiple of 6" -- "${good[@]}" --batch 25 --micro 2
    refuses "--accumulate does not go with --dp, --tp or --pp; .* --micro" -- "${good[@]}" --micro 2 --accumulate 2
    refuses "--schedule is '$folder/missing.csv': No such file.*; use gpipe" -- "${good[@]}" --schedule "$folder/missing.csv"
    refuses "--schedule '.*no_forward.csv' has no forward pass, such as 0F0; fsdp-plan" -- "${good[@]}" --schedule "$folder/no_forward.csv"
    refuses "--stages-per-rank is 4, and --schedule gpipe says itself how many there are; use" -- "${good[@]}" --schedule gpipe \
        --stages-per-rank 4
    refuses "--schedule interleaved has 6 stages, more than --layers 1; use" -- "${good[@]}" --schedule interleaved --pp 3 --micro 6
    refuses "--layers is 5, which the 3 stages of --schedule 1f1b do not divide; use" -- "${good[@]}" --layers 5 --pp 3
    refuses "--optimizer muon needs whole matrices, and does not go with" -- "${good[@]}" --micro 1 --optimizer muon
    refuses "--param-dtype and --reduce-dtype other than f32 do not go" -- "${good[@]}" --micro 1 --param-dtype bf16
    refuses "--hook and --quantized-params do not go" -- "${good[@]}" --micro 1 --quantized-params
    refuses "--tp is 3, which does not divide --heads 2; use a divisor of the heads" -- "${good[@]}" --tp 3
    refuses "--tp is 3, which does not divide the vocabulary of 256 bytes; use a power of 2" -- "${good[@]}" --tp 3 --width 48 --heads 3
}
[[ ${RANKS:-1} -ne 3 ]] || on_a_mesh

# What the library refuses.
speaker='libfsdp: error: '
refuses "prefetch is 65; it accepts 0 to 64" -- "${good[@]}" --prefetch 65
refuses "axis_strategies gives axis \"dp\" the strategy \"ZERO\", which is none; use" -- "${good[@]}" --axis-strategies dp=zero
refuses "group_size is 1000, which does not divide the [0-9]+ ranks; use" -- "${good[@]}" --strategy hybrid_shard --group-size 1000
refuses "quantized_params with SHARD_GRAD_OP; only FULL_SHARD" -- "${good[@]}" --quantized-params --strategy shard_grad_op
refuses "a hook serves NO_SHARD and HYBRID_SHARD .*this model is FULL_SHARD in f32" -- "${good[@]}" --hook powersgd
refuses "a hook serves .*this model is SHARD_OPTIM in f32" -- "${good[@]}" --hook int8 --hook-start 2 --strategy shard_optim
refuses "a hook serves .*with gradients in f32, and this model is NO_SHARD in bf16" -- "${good[@]}" --hook int8 \
    --strategy no_shard --reduce-dtype bf16

if [[ ${RANKS:-1} -eq 3 ]]; then
    printf '0F0,0B0,0X0\n1F0,1B0\n2F0,2B0\n' >"$folder/unknown_action.csv"
    printf '0F0,0B0\n' >"$folder/one_stage.csv"
    refuses "pipeline.*'0X0'" -- "${good[@]}" --pp 3 --layers 3 --schedule "$folder/unknown_action.csv" --micro 1
    refuses "pipeline.* 1 rank.* 3" -- "${good[@]}" --pp 3 --layers 3 --schedule "$folder/one_stage.csv" --micro 1
    refuses "interleaved needs a multiple of the 3 ranks as micro-batches: 4 is none; take 3 or 6" -- "${good[@]}" --pp 3 --layers 6 \
        --schedule interleaved --micro 4
fi

# These can only be found out on the way.
speaker='03_gpt: '
header=allowed
refuses "the loss of step [0-9]+ is not finite; use an --lr below 10" -- "${good[@]}" --lr 10 --warmup 0 --clip 1e9 \
    --weight-decay 10 --steps 400 --interval 400 --param-dtype f16
refuses "gradient norm of step [0-9]+ is not finite; use an --lr below 10" -- "${good[@]}" --lr 10 --warmup 0 --clip 1e9 \
    --weight-decay 10 --steps 400 --interval 400

((failures == 0)) || {
    echo "$failures of the cases failed"
    exit 1
}
