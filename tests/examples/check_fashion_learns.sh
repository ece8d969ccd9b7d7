#!/usr/bin/env bash
# 04_fashion_mnist learns from a few thousand images: in two epochs more than four fifths of the test images. Batches are
# such that neither ranks nor the number of images are divided by them.
#
#   check_fashion_learns.sh RANKS DTYPE PROGRAM MPIEXEC_AND_ITS_ARGUMENTS...
set -euo pipefail

ranks=$1 dtype=$2 program=$3
shift 3
data=/usr/share/datasets/fashion-mnist
[[ -e $data/train-images-idx3-ubyte.gz ]] || {
    echo "skipped: $data is not there; apt-get install dataset-fashion-mnist"
    exit 77
}

# Open MPI 5 sends what ranks write to stderr, as the bar, to its own stdout.
output=$("$@" "$program" --data $data --dtype "$dtype" --epochs 2 --train-images 5003 --test-images 1001 --batch 33 \
    --accumulate 2 --warmup 20 --lr 0.05 --progress on 2>/dev/null </dev/null | sed $'s/.*\033\\[K//')
printf '%s\n' "$output"

# expect REGEX: some line matches.
expect() {
    grep -Eq -- "$1" <<<"$output" || {
        echo "no line of the output matches '$1'"
        exit 1
    }
}

expect "^model +28986 parameters:"
expect "^ranks +$ranks, FULL_SHARD, $dtype;"
expect "^data +$data: 5003 images to train on, 1001 to test on$"
expect "^training +2 epochs of 76 steps of 2 x 33 images;"
expect "^epoch  1 [|] loss [01][.][0-9]{4} [|] test accuracy "
expect "^epoch  2 [|] loss 0[.][0-9]{4} [|] test accuracy +[89][0-9][.][0-9]+%"
expect "^ +T-shirt +trouser pullover +dress +coat +sandal +shirt +sneaker +bag +boot +found$"
expect "^boot( +[0-9]+){10} +[0-9.]+%$"
expect "^test accuracy [89][0-9][.]"

awk '/^(T-shirt|trouser|pullover|dress|coat|sandal|shirt|sneaker|bag|boot) / { for (i = 2; i <= 11; i++) n += $i }
    END { if (n != 1001) { print n " images are in the table, not 1001"; exit 1 } }' <<<"$output"
