#!/usr/bin/env bash
# A program whose standard output cannot be written fails, and says why, once.
#
#   check_full_output.sh MPIEXEC_AND_ITS_ARGUMENTS... -- PROGRAM [ARGUMENT]...
set -euo pipefail

launch=()
while [[ $1 != -- ]]; do
    launch+=("$1")
    shift
done
shift

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
# shellcheck disable=SC2016 # for the inner shell: each rank's own output, and not the launcher's
"${launch[@]}" sh -c 'exec "$0" "$@" >/dev/full' "$@" >"$log" 2>&1 </dev/null || status=$?
cat "$log"
[[ $status -ne 0 ]] || { echo "ended with 0"; exit 1; }
[[ $(grep -c "standard output could not be written: " "$log") -eq 1 ]] || { echo "not said once"; exit 1; }
