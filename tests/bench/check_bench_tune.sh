#!/usr/bin/env bash
# fsdp-bench --tune: a file in the format of a tuning file, which the library obeys, and none left half-written.
#
#   check_bench_tune.sh PROGRAM MPIEXEC [FLAG]...
set -euo pipefail

program=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$@" "$program" "--tune=$folder/tuning" --begin 64 --end 32K --factor 8 --repeat 1 --iterations 3 | tee "$folder/log"
cat "$folder/tuning"
[[ $(head -n 1 "$folder/tuning") == '# fsdp-tuning 1' ]]
[[ ! -e $folder/tuning.tmp ]]
sed 's/ *#.*//; /^$/d' "$folder/tuning" >"$folder/rows"
for collective in allgather reduce_scatter allreduce; do
    grep -qE "^$collective (symmetric|user|any) (one|many) any [a-z]+$" "$folder/rows"
done
if grep -vE '^[a-z_]+ +(symmetric|user|any) +(one|pair|many|any) +([0-9]+[KMG]?|any) +[a-z]+$' "$folder/rows"; then
    echo "check_bench_tune.sh: rows that are none"
    exit 1
fi
"$@" env "FSDP_TUNING_FILE=$folder/tuning" "$program" --memory-rate 10G --no-twin --begin 64 --end 32K --repeat 1 --iterations 2
