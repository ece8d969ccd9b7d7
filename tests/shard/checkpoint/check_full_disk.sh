#!/usr/bin/env bash
# A disk that fills up: 03_gpt saves on a small tmpfs that has room for one checkpoint and a half; then with room for all ranks but
# one, whose writes fail from the middle of the second save on. That save is an error that names the file, nothing half written
# stays, the first one verifies, and the run goes on from it once there is room. At last a small ext4, where room is reserved
# before anything is written; left out where no image of one can be mounted.
#
#   check_full_disk.sh BAD_DISK FSDP_CKPT PROGRAM DATA MPIEXEC_AND_ITS_ARGUMENTS...
#
# BAD_DISK is the library to preload (bad_disk.c). Needs root to mount; exits with 77, a skip, without.
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../../support/check.sh"

bad_disk=$1 ckpt=$2 program=$3 data=$4
shift 4
launch=("$@")

folder=$(realpath "$folder")
disk=$folder/disk
trap 'umount "$disk" 2>/dev/null || true; rm -rf "$folder"' EXIT

# A model of 15000 parameters: 60 KB of them, and 120 KB of moments.
options=(--data "$data" --layers 1 --heads 2 --width 32 --context 32 --batch 12 --steps 20 --val-batches 1 --sample 0
    --progress off --exact)

run() {
    timeout "$((200 * ${TEST_TIME_FACTOR:-1}))" "${launch[@]}" "${wrap[@]}" "$program" "${options[@]}" "$@" >"$folder/out" 2>&1 </dev/null
}
wrap=()

mkdir "$disk"
if ! mount -t tmpfs -o size=400k tmpfs "$disk" 2>/dev/null; then
    skip "a tmpfs cannot be mounted here"
fi

# fails WHAT: the second save is an error that ends every rank; how long that took is shown. The first one stays and is good.
fails() {
    local begin=$SECONDS
    ! run --checkpoint "$disk/run" --every 5 || fail "$1: there was room for two checkpoints"
    echo "$1: every rank has ended after $((SECONDS - begin)) s"
    grep -q 'No space left on device' "$folder/out" || fail "$1: why it has failed is not said"
    [[ $(cat "$disk/run/latest") == step-000000005 ]] || fail "$1: the latest checkpoint is not the first"
    [[ $(ls -A "$disk/run") == $'.lock\nlatest\nstep-000000005' ]] || fail "$1: left over: $(ls -A "$disk/run")"
    "$ckpt" verify "$disk/run" >"$folder/out" || fail "$1: the checkpoint before is not good"
}

run || fail "the run without checkpoints"
expected=$(grep '^exact parameters' "$folder/out")

fails "a full disk"

mount -o remount,size=4m "$disk"
wrap=(env "LD_PRELOAD=$bad_disk" FAULT=full "FAULT_IN=$disk/run/.step-000000010" FAULT_RANK=1 FAULT_CALL=2)
fails "no room for one rank"
wrap=()

run --checkpoint "$disk/run" --every 5 || fail "the run that goes on"
grep -q '^resumed .*step 5,' "$folder/out" || fail "nothing was resumed"
[[ $(grep '^exact parameters' "$folder/out") == "$expected" ]] || fail "it ends elsewhere"

umount "$disk"
truncate -s 450K "$folder/image"
if mkfs.ext4 -q -m 0 -b 1024 -N 32 -O ^has_journal "$folder/image" 2>/dev/null &&
    mount -o loop "$folder/image" "$disk" 2>/dev/null; then
    rmdir "$disk/lost+found"
    fails "a full ext4"
fi
echo "a full disk is an error, and the last checkpoint is good"
