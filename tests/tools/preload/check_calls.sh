#!/usr/bin/env bash
# Runs a program with the drop-in: what it prints is what it prints without, and the report has seen each of its calls once.
#
#   check_calls.sh LIBRARY LAUNCH... -- PROGRAM [ARGUMENT]...
#
# The program prints a line `called NAME COUNT` for each collective. TAKEN="NAME..." names collectives of which at least one call
# must have been taken, or compared; DECLINED="NAME..." some of which none must have been.
set -euo pipefail

library=$1
shift
launch=()
while [[ $1 != -- ]]; do
    launch+=("$1")
    shift
done
shift
report="$TMPDIR/report"

"${launch[@]}" "$@" >"$TMPDIR/plain"
FSDP_MPI_REPORT="$report" "${launch[@]}" env LD_PRELOAD="$library" "$@" >"$TMPDIR/preloaded" 2>"$TMPDIR/errors" ||
    { cat "$TMPDIR/errors" "$TMPDIR/preloaded"; echo "the program fails with the drop-in alone"; exit 1; }
cat "$report" "$TMPDIR/errors"
diff "$TMPDIR/plain" "$TMPDIR/preloaded" || { echo "'>' is printed with the drop-in alone"; exit 1; }
! grep -q "libfsdp_mpi:" "$TMPDIR/errors" || { echo "the drop-in has something to say"; exit 1; }

# sums over the sizes: calls, taken
sum_of() {
    awk -v name="$1" -v column="$2" '$1 == name { sum += $column } END { print sum + 0 }' "$report"
}

grep -q '^called ' "$TMPDIR/plain" || { echo "the program says nothing of its calls"; exit 1; }
while read -r _ name count; do
    [[ $(sum_of "$name" 3) == "$count" ]] || { echo "$name is called $count times, and seen $(sum_of "$name" 3) times"; exit 1; }
done < <(grep '^called ' "$TMPDIR/plain")
for name in ${TAKEN:-}; do
    (($(sum_of "$name" 5) > 0)) || { echo "no call of $name is taken"; exit 1; }
done
for name in ${DECLINED:-}; do
    (($(sum_of "$name" 5) == 0)) || { echo "calls of $name are taken"; exit 1; }
done
