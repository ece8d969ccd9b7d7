#!/usr/bin/env bash
# The particles of docs/listings: saved on 3 ranks, gone on with on 1, 2 and 5, and read by a reader that is not ours.
#
#   check_particles.sh PROGRAM CKPT MPIEXEC NUMPROC_FLAG [FLAG]...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"

program=$1 ckpt=$2 mpiexec=$3 numproc=$4
shift 4
step=0
for ranks in 3 1 2 5; do
    step=$((step + 10))
    "$mpiexec" "$numproc" "$ranks" "$@" "$program" "$folder/run" 10 >"$folder/out" 2>"$folder/err" || fail "$ranks ranks end with $?"
    grep -qx "1000 of 1000 particles are where they have to be after $step steps" "$folder/out" || fail "$ranks ranks say something else"
done
"$ckpt" verify "$folder/run" >"$folder/out"
"$ckpt" list "$folder/run" >"$folder/out"
for tensor in particles.id particles.x particles.v; do
    grep -q "$tensor" "$folder/out" || fail "fsdp-ckpt does not list $tensor"
done
