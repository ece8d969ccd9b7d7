#!/usr/bin/env bash
# Checkpoints that an earlier state of 0.1 has written, before tensors were aligned: earlier/, by 03_gpt on 2 ranks. They load on any
# number of ranks, with the parameters that were saved; and training goes on with the losses that it had then, to rounding, so that
# moments are what they were.
#
#   check_earlier_files.sh PROGRAM MPIEXEC NUMPROC_FLAG RANKS [MPIEXEC_FLAG]...
set -euo pipefail

program=$1 mpiexec=$2 numproc=$3 ranks=$4
shift 4
earlier=$(dirname "$0")/earlier

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    cat "$folder/out"
    echo "$*"
    exit 1
}

# run OPTION...: in a copy, since a run locks its folder
run() {
    rm -rf "$folder/run" && cp -R "$earlier" "$folder/run"
    "$mpiexec" "$numproc" "$ranks" "$@" "$program" --data "$earlier/text" --layers 2 --heads 1 --width 4 --context 8 --batch 6 \
        --steps 4 --warmup 1 --lr 0.1 --val-batches 1 --sample 0 --progress off --exact --checkpoint "$folder/run" "${more[@]}" \
        >"$folder/out" 2>&1 </dev/null || fail "a run has failed"
}

more=()
run "$@"
grep -q '^resumed .*: step 4, saved by 2 ranks' "$folder/out" || fail "nothing was resumed"
grep -q '^exact parameters 3165f825e59aa741$' "$folder/out" || fail "the parameters are others"

more=(--resume "$folder/run/step-000000002")
run "$@"
grep -q '^resumed .*: step 2, saved by 2 ranks' "$folder/out" || fail "nothing was resumed"
awk '/^exact step/ { wanted = $3 == 3 ? 4.791251125965 : 4.427704101521; d = $NF / wanted - 1; if (d * d < 1e-10) good++; n++ }
    END { exit !(n == 2 && good == 2) }' "$folder/out" || fail "training goes on with other losses"
echo "$ranks ranks: files of an earlier state load"
