#!/usr/bin/env bash
# 04_fashion_mnist refuses bad input: with a status of its own, one message that names the value and the remedy, nothing on
# standard output, and at once.
#
#   check_fashion_bad_input.sh PROGRAM MPIEXEC_AND_ITS_ARGUMENTS...
set -euo pipefail

# shellcheck source=tests/examples/fashion_files.sh
. "$(dirname "$0")/fashion_files.sh"

program=$1
shift
launch=("$@")

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0
train_images=train-images-idx3-ubyte.gz
train_labels=train-labels-idx1-ubyte.gz
test_labels=t10k-labels-idx1-ubyte.gz

# refuses REGEX OPTION...: runs the program; REGEX must match its one message.
refuses() {
    local expected=$1 status=0 problem=""
    shift
    timeout "$((120 * ${TEST_TIME_FACTOR:-1}))" "${launch[@]}" "$program" "$@" >"$folder/out" 2>"$folder/err" </dev/null || status=$?
    if ((status == 0 || status > 123)); then
        problem="status $status"
    elif (($(grep -c '^04_fashion_mnist: ' "$folder/err") != 1)); then
        problem="not one message"
    elif ! grep '^04_fashion_mnist: ' "$folder/err" | grep -Eq -- "$expected"; then
        problem="no message that matches '$expected'"
    elif grep -Eq '^(model|ranks|epoch|budget|exact) ' "$folder/out"; then
        problem="output before the message"
    else
        grep '^04_fashion_mnist: ' "$folder/err"
        return
    fi
    failures=$((failures + 1))
    echo "FAILED with '$*': $problem"
    cat "$folder/out" "$folder/err"
}

# spoil NAME: a folder of good files, into whose file NAME goes what comes on standard input; into `spoiled`.
spoil() {
    spoiled=$folder/spoiled
    rm -rf "$spoiled"
    cp -r "$folder/good" "$spoiled"
    cat >"$spoiled/$1"
}

mkdir "$folder/good"
fashion_files "$folder/good" 40 20
good=(--epochs 1 --batch 8 --data "$folder/good")
bad=(--epochs 1 --batch 8 --data "$folder/spoiled")

refuses "missing': No such file.*apt-get install dataset-fashion-mnist, or give a folder" --data "$folder/missing"

cp -r "$folder/good" "$folder/spoiled"
rm "$folder/spoiled/$test_labels"
refuses "$test_labels cannot be opened in --data: No such file.*give a folder" "${bad[@]}"
spoil $train_images < <(image_file 40 | gzip -1 | head -c 3000)
refuses "$train_images (ends|cannot).*give an intact copy" "${bad[@]}"
spoil $train_images < <(image_file 40 | head -c 5000 | gzip -1)
refuses "$train_images ends after 4984 of the 31360 bytes of its content; give" "${bad[@]}"
spoil $train_images < <(be32 $((0x803)) | gzip -1)
refuses "$train_images ends after 0 of the 4 bytes of its header; give" "${bad[@]}"
spoil $train_images </dev/null
refuses "$train_images ends after 0 of the 4 bytes of its header; give" "${bad[@]}"
spoil $train_images < <(image_file 40 | gzip -1 | head -c -6; printf 'xxxxxx')
refuses "$train_images cannot be unpacked .*give an intact copy" "${bad[@]}"
spoil $train_images < <(label_file 40 | gzip -1)
refuses "$train_images begins with 0x00000801 instead of 0x00000803.*give one" "${bad[@]}"
spoil $train_labels < <(image_file 40 | gzip -1)
refuses "$train_labels begins with 0x00000803 instead of 0x00000801.*give one" "${bad[@]}"
spoil $train_images < <(be32 $((0x803)); be32 0)
refuses "$train_images says that it has 0 entries; 1 to" "${bad[@]}"
spoil $train_images < <(be32 $((0x803)); be32 4294967295)
refuses "$train_images says that it has 4294967295 entries; 1 to" "${bad[@]}"
spoil $train_images < <(be32 $((0x803)); be32 40; be32 32; be32 28)
refuses "$train_images has images of 32 x 28; they must be 28 x 28" "${bad[@]}"
spoil $train_images < <({ image_file 40; printf 'x'; } | gzip -1)
refuses "$train_images goes on after the 31360 bytes" "${bad[@]}"
spoil $train_labels < <(label_file 39 | gzip -1)
refuses "$train_labels has 39 labels for 40 images; give" "${bad[@]}"
spoil $test_labels < <({ be32 $((0x801)); be32 20; head -c 19 /dev/zero; printf '\x0a'; } | gzip -1)
refuses "$test_labels has label 10 at entry 19; labels are 0 to 9" "${bad[@]}"

refuses "--epochs is '0'; give a whole number from 1" "${good[@]}" --epochs 0
refuses "--batch is '-8'; give a whole number from 1" "${good[@]}" --batch -8
refuses "--accumulate is '1.5'; give a whole number" "${good[@]}" --accumulate 1.5
refuses "--lr is 'nan'; give a number" "${good[@]}" --lr nan
refuses "--momentum is '1'; give a number" "${good[@]}" --momentum 1
refuses "--strategy is 'zero'; use one of FULL_SHARD, NO_SHARD, SHARD_GRAD_OP, SHARD_OPTIM, HYBRID_SHARD, HYBRID_SHARD_ZERO2" "${good[@]}" --strategy zero
refuses "--dtype is 'f16'; use one of f32, bf16" "${good[@]}" --dtype f16
refuses "--progress is 'maybe'; use one of auto, on, off" "${good[@]}" --progress maybe
refuses "--batch 1000000000 needs [0-9]+ bytes .*use a smaller one" "${good[@]}" --batch 1000000000
refuses "option '--colour' is unknown; --help" "${good[@]}" --colour
refuses "--epochs needs a value; --help" "${good[@]}" --epochs
refuses "argument 'more' belongs to no option; --help" "${good[@]}" more

((failures == 0)) || {
    echo "$failures of the cases failed"
    exit 1
}
