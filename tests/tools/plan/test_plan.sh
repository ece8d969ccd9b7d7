#!/usr/bin/env bash
# fsdp-plan as its users meet it: what it prints, writes and refuses, and with which status. $1: the program
set -euo pipefail

plan=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "test_plan.sh: $1" >&2
    exit 1
}

# $1: the status; then words that must be in what is printed, each an argument, up to --; then the arguments
expect() {
    local status=$1 words=() found=0 output
    shift
    while [[ $1 != -- ]]; do
        words+=("$1")
        shift
    done
    shift
    output=$("$plan" "$@" 2>&1) || found=$?
    [[ $found == "$status" ]] || fail "status $found instead of $status for '$*': $output"
    for word in "${words[@]}"; do
        grep -qF -- "$word" <<<"$output" || fail "no '$word' for '$*' in: $output"
    done
}

expect 0 "no deadlock with 1 buffer " "1f1b: 4 ranks, 4 stages, 8 micro-batches, 48 messages" "bubble of 27.27%" \
    "by rank: 4 3 2 1" -- pipeline
expect 0 "step      33," "formula   a bubble of 27.27%" -- pipeline --schedule gpipe
expect 0 "a bubble of 15.79%" -- pipeline --schedule interleaved --stages-per-rank 2 --no-grid
expect 0 "a bubble of 11.11%" "4+1 3+2 2+3 1+4" -- pipeline --schedule zb-h1
expect 0 "step      65," -- pipeline --transfer 2 --buffers 3
expect 1 "limit is 3" ">0F3<" -- pipeline --most-held 3
expect 2 "6 is none; take 4 or 8" -- pipeline --schedule interleaved --stages-per-rank 2 --micro 6
expect 2 "--schedule is '2f2b'" -- pipeline --schedule 2f2b
expect 2 "--micro" -- pipeline --micro 0
expect 2 "a command is missing" --
expect 2 "no command 'memory'" -- memory
expect 3 "cannot be opened" -- pipeline --file "$folder/missing.csv"
expect 3 "cannot be written" -- pipeline --write "$folder/missing/schedule.csv"

# What is written is read again, compute alone and with messages, and takes the same time.
"$plan" pipeline --write - >"$folder/compute.csv"
"$plan" pipeline --lowered --write "$folder/lowered.csv" >/dev/null
[[ $(wc -l <"$folder/compute.csv") == 4 ]] || fail "not 4 lines"
grep -q '0SEND_F0' "$folder/lowered.csv" || fail "no messages in what is lowered"
grep -q 'SEND' "$folder/compute.csv" && fail "messages in what is not"
for file in compute lowered; do
    expect 0 "48 messages" "step      33," -- pipeline --file "$folder/$file.csv"
done

# A receive is taken away, and two messages wait for each other.
sed 's/,2RECV_F5//' "$folder/lowered.csv" >"$folder/missing.csv"
expect 1 "1SEND_F5 on rank 1 has nothing at its other end: there is no 2RECV_F5" ">1SEND_F5<" -- \
    pipeline --file "$folder/missing.csv"
printf '0RECV_B0,0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n' >"$folder/circle.csv"
expect 1 "deadlock with 1 buffer" "rank 0 at 0RECV_B0, rank 1 at 1RECV_F0" ">0RECV_B0<" -- pipeline --file "$folder/circle.csv"
printf '0F0,0B0\n1F0,what,1B0\n' >"$folder/odd.csv"
expect 1 "odd.csv, line 2, action 2: 'what' is no action" -- pipeline --file "$folder/odd.csv"
