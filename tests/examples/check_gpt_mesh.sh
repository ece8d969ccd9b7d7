#!/usr/bin/env bash
# 03_gpt on a mesh: with the same dp, tp and micro-batches, no number of stages, no schedule, neither sequence parallelism nor
# recomputation changes a bit of a loss or of a parameter; tensor parallelism changes rounding only; and every rank holds what its
# budget has said, to the byte.
#
#   check_gpt_mesh.sh PART PROGRAM DATA MPIEXEC NUMPROC_FLAG [MPIEXEC_FLAG]...
#
# PART is quick or shapes (up to 4 ranks), checkpoints (which every shape can load and writes alike), all (up to 8 ranks, each shape
# with each schedule), or resumes_all (ten steps of one rank, and each of twelve shapes
# goes on from there).
set -euo pipefail

part=$1 program=$2 data=$3 mpiexec=$4 numproc=$5
shift 5
flags=("$@")
# shellcheck source=tests/examples/exact_lines.sh
. "$(dirname "$0")/exact_lines.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OPENBLAS_NUM_THREADS=1

# run FILE DP TP PP MICRO OPTION...: leaves the exact lines of a run in FILE
run() {
    local file=$1 ranks=$(($2 * $3 * $4)) what="dp $2, tp $3, pp $4, $5 micro-batches ${*:6}"
    local options=(--dp "$2" --tp "$3" --pp "$4" --micro "$5" "${@:6}")
    timeout "$((600 * ${TEST_TIME_FACTOR:-1}))" "$mpiexec" "$numproc" "$ranks" "${flags[@]}" "$program" --data "$data" "${model[@]}" \
        --lr 0.001 --warmup 100 --clip 1 --steps "$steps" --val-batches 1 --sample 0 --progress off --exact "${options[@]}" \
        >"$folder/all" </dev/null
    keep_exact "$what" "$steps" "$folder/all" "$file"
    grep -q "^budgets to the byte on $ranks of $ranks ranks$" "$folder/all" || {
        cat "$folder/all"
        echo "$what: a rank holds another number of bytes than its budget"
        exit 1
    }
}

# equal REFERENCE DP TP PP MICRO OPTION...: the same bits as the run in the file REFERENCE
equal() {
    run "$folder/other" "${@:2}"
    same "dp $2, tp $3, pp $4 with ${*:6}, and pp 1," "$1" "$folder/other"
    echo "dp $2, tp $3, pp $4, ${*:6}: the bits of pp 1"
}

quick() {
    model=(--layers 4 --heads 2 --width 32 --context 32 --batch 8) steps=3
    run "$folder/tp" 1 2 1 2
    equal "$folder/tp" 1 2 2 2 --schedule interleaved --recompute selective --sequence-parallel
}

# Runs of a second each: every option at least once with every axis.
shapes() {
    model=(--layers 4 --heads 4 --width 32 --context 24 --batch 8) steps=4
    run "$folder/one" 1 1 1 2
    equal "$folder/one" 1 1 4 2 --schedule zb-h1 --recompute full
    printf '0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n' >"$folder/schedule.csv"
    equal "$folder/one" 1 1 2 2 --schedule "$folder/schedule.csv" --recompute full
    run "$folder/tp" 1 2 1 2 --recompute selective
    near "tp 2 beside one rank" "$folder/one" "$folder/tp" 2e-6
    equal "$folder/tp" 1 2 2 2 --schedule gpipe --sequence-parallel --recompute selective
    run "$folder/dp" 2 1 1 2
    equal "$folder/dp" 2 1 2 2 --schedule interleaved
    strategies 4 1 1 2 shard_grad_op no_shard
}

# strategies DP TP PP MICRO OUTER...: on nodes of two data ranks, the bits of one data axis, with OUTER over one of two and full_shard
# over the other
strategies() {
    local shape=("${@:1:4}") outer
    FSDP_NODE_SIZE=2 run "$folder/nodes" "${shape[@]}"
    for outer in "${@:5}"; do
        FSDP_NODE_SIZE=2 equal "$folder/nodes" "${shape[@]}" --outer 2 --axis-strategies "outer=$outer,inner=full_shard"
    done
}

# save FILE DP TP PP OPTION...: a run whose checkpoints are in FILE.saved, and its exact lines in FILE
save() {
    "$mpiexec" "$numproc" $(($2 * $3 * $4)) "${flags[@]}" "$program" --data "$data" "${model[@]}" --steps $steps --warmup 100 \
        --val-batches 1 --sample 0 --progress off --exact --checkpoint "$1.saved" --dp "$2" --tp "$3" --pp "$4" "${@:5}" >"$folder/all" </dev/null
    grep '^exact ' "$folder/all" >"$1"
}

# resumes FILE DP TP PP OPTION...: goes on from step `step` of the run FILE
resumes() {
    save "$folder/other" "${@:2}" --resume "$1.saved/step-$step"
    near "dp $2, tp $3, pp $4 resuming what one rank has saved" "$folder/behind" "$folder/other" 2e-6
}

checkpoints() {
    model=(--layers 4 --heads 2 --width 32 --context 24 --batch 8 --micro 2) steps=4
    save "$folder/one" 1 1 1 --every 2 --lr 0.001
    grep -v ' step [12] ' "$folder/one" >"$folder/behind"
    step=000000002
    resumes "$folder/one" 1 2 2 --schedule interleaved --lr 0.001
    resumes "$folder/one" 1 1 1 --lr 0.001
    same "an undisturbed run and one that has resumed" "$folder/behind" "$folder/other"

    # With a rate of 0 parameters stay what they were: initial values, the same file from every shape.
    steps=1
    save "$folder/first" 1 1 1 --lr 0
    save "$folder/divided" 2 2 1 --lr 0
    save "$folder/stages" 1 2 2 --lr 0 --schedule interleaved
    for shape in divided stages; do
        cmp "$folder/first.saved/step-000000001/model.safetensors" "$folder/$shape.saved/step-000000001/model.safetensors"
    done
    echo "the same model.safetensors from one rank, from dp 2 and tp 2, and from tp 2 and pp 2"
}

resumes_all() {
    local shape dp tp pp
    model=(--layers 16 --heads 8 --width 64 --context 64 --batch 48 --micro 4 --clip 1) steps=20
    save "$folder/one" 1 1 1 --every 10 --keep 0 --lr 0.001
    grep -Ev ' step ([1-9]|10) ' "$folder/one" >"$folder/behind"
    step=000000010
    for shape in 1,1,8 1,2,4 1,4,2 1,8,1 2,1,4 2,2,2 2,4,1 4,1,2 4,2,1 1,2,2 3,1,2 1,1,1; do
        IFS=, read -r dp tp pp <<<"$shape"
        resumes "$folder/one" "$dp" "$tp" "$pp" --lr 0.001
    done
    same "an undisturbed run and one that has resumed" "$folder/behind" "$folder/other"
    save "$folder/divided" 2 2 2 --every 10 --keep 0 --lr 0.001
    grep -Ev ' step ([1-9]|10) ' "$folder/divided" >"$folder/behind"
    resumes "$folder/divided" 2 2 2 --lr 0.001
    same "an undisturbed run of dp 2, tp 2, pp 2 and one that has resumed" "$folder/behind" "$folder/other"
}

# What there is of options for a shape. MICRO must be a multiple of pp, for interleaved schedules.
each_way() {
    local reference=$1 dp=$2 tp=$3 pp=$4 micro=$5 schedule recompute
    for schedule in gpipe 1f1b interleaved zb-h1; do
        for recompute in none selective full; do
            equal "$reference" "$dp" "$tp" "$pp" "$micro" --schedule $schedule --recompute $recompute
            ((tp == 1)) || equal "$reference" "$dp" "$tp" "$pp" "$micro" --schedule $schedule --recompute $recompute --sequence-parallel
        done
        ((pp > 1)) || break
    done
}

all() {
    local shape dp tp pp micro batch
    steps=${STEPS:-20}
    model=(--layers 16 --heads 8 --width 64 --context 64 --batch 32)
    run "$folder/twice.1" 2 2 2 8
    run "$folder/twice.2" 2 2 2 8
    same "two runs with dp 2, tp 2, pp 2" "$folder/twice.1" "$folder/twice.2"
    for shape in 1,1,8 1,2,4 1,4,2 1,8,1 2,1,4 2,2,2 2,4,1 4,1,2 4,2,1 8,1,1 1,1,1 1,2,1 1,1,2 3,1,1 1,2,2 3,1,2; do
        IFS=, read -r dp tp pp <<<"$shape"
        micro=$((dp < 8 ? 8 : 4)) batch=$((dp == 3 ? 48 : 32))
        model=(--layers 16 --heads 8 --width 64 --context 64 --batch $batch)
        reference=$folder/$dp.$tp
        [[ -e $reference ]] || run "$reference" "$dp" "$tp" 1 $micro
        [[ -e $folder/one.$batch.$micro ]] || run "$folder/one.$batch.$micro" 1 1 1 $micro
        near "dp $dp, tp $tp beside one rank" "$folder/one.$batch.$micro" "$reference" 2e-6
        each_way "$reference" "$dp" "$tp" "$pp" $micro
    done
    model=(--layers 16 --heads 8 --width 64 --context 64 --batch 32)
    strategies 4 2 1 8 shard_grad_op no_shard full_shard
    strategies 4 1 2 8 shard_grad_op no_shard
}

"$part"
