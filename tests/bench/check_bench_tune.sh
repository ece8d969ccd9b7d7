#!/usr/bin/env bash
# fsdp-bench --tune: a file in the format of a tuning file, which the library obeys, and none left half-written.
#
#   check_bench_tune.sh PROGRAM MPIEXEC [FLAG]...
set -euo pipefail

program=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# what is not timed is as the context has it
printf '# fsdp-tuning 1\nallreduce cached many 4321 inline\nreduce user many 12345 staged\n' >"$folder/before"
"$@" env "FSDP_TUNING_FILE=$folder/before" "$program" "--tune=$folder/tuning" --begin 64 --end 32K --factor 8 --repeat 1 --iterations 3 | tee "$folder/log"
cat "$folder/tuning"
[[ $(head -n 1 "$folder/tuning") == '# fsdp-tuning 1' ]]
[[ ! -e $folder/tuning.tmp ]]
sed 's/ *#.*//; /^$/d' "$folder/tuning" >"$folder/rows"
for collective in allgather reduce_scatter allreduce; do
    grep -qE "^$collective (symmetric|user|any) (one|many) any [a-z]+$" "$folder/rows"
done
grep -qE '^reduce +user +many +12345 +staged$' "$folder/rows"
[[ $(head -n 1 "$folder/rows" | tr -s ' ') == 'allreduce cached many 4321 inline' ]]
if grep -vE '^[a-z_]+ +(symmetric|user|cached|any) +(one|pair|many|any) +([0-9]+[KMG]?|any) +[a-z]+$' "$folder/rows"; then
    echo "check_bench_tune.sh: rows that are none"
    exit 1
fi
"$@" env "FSDP_TUNING_FILE=$folder/tuning" "$program" --memory-rate 10G --no-twin --begin 64 --end 32K --repeat 1 --iterations 2
