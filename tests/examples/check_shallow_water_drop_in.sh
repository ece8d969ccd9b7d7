#!/usr/bin/env bash
# The program with MPI alone under the drop-in: gradients of weights are taken to libfsdp, and nothing but their rounding changes.
#
#   check_shallow_water_drop_in.sh RANKS PROGRAM PLAIN DROP_IN MPIEXEC NUMPROC_FLAG [MPIEXEC_FLAG]...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"
# shellcheck source=tests/examples/exact_lines.sh
. "$(dirname "$0")/exact_lines.sh"

ranks=$1 plain=$3 drop_in=$4
launch=("$5" "$6" "$1" "${@:7}")
options=(--nx 16 --ny 16 --steps 6 --updates 4 --batch 32 --width 256 --layers 2 --exact --test 0)

"${launch[@]}" "$plain" "${options[@]}" >"$folder/out" </dev/null || fail "without it"
keep_exact "without it" 6 "$folder/out" "$folder/plain"
FSDP_MPI_AFTER=0 FSDP_MPI_REPORT="$folder/log" "${launch[@]}" env "LD_PRELOAD=$drop_in" "$plain" "${options[@]}" \
    >"$folder/out" </dev/null || fail "with it"
keep_exact "with it" 6 "$folder/out" "$folder/preloaded"
near "the drop-in on $ranks ranks" "$folder/plain" "$folder/preloaded" 1e-6
same "fields" <(grep "^exact fields" "$folder/plain") <(grep "^exact fields" "$folder/preloaded")
# 24 gradients of the 256 x 256 weights, of 256 KiB: taken
grep -Eq '^allreduce +<[0-9]+[KM] +24 +6291456 +24 +0 ' "$folder/log" || fail "the gradients are not taken"
