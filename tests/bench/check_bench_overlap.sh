#!/usr/bin/env bash
# fsdp-bench --overlap counts a block's iterations with the compute in them. One rank has done its part of 8 bytes long before
# it has been asleep once: a block that is as long as the communication asks for has up to a million naps in it.
#
#   check_bench_overlap.sh PROGRAM MPIEXEC [FLAG]...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"

program=$1
shift
"$@" "$program" --memory-rate 10G --no-twin --overlap --collective allgather --begin 8 --end 8 --repeat 1 --csv "$folder/csv"
for column in iterations mpi_iterations; do
    n=$(awk -F, -v name="$column" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } NR == 2 { print $at }' "$folder/csv")
    if ((n < 3 || n > 50000)); then
        fail "$column of 8 bytes are $n"
    fi
done
