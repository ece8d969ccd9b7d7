#!/usr/bin/env bash
# Runs programs one after the other on a cluster that is up: all must exit with 0.
#
#   run_programs.sh HOST_SPEC --by-slot|--by-node PROGRAM...
set -euo pipefail

cluster=$(dirname "${BASH_SOURCE[0]}")/cluster.sh
spec=$1 placement=$2
shift 2
failures=0

for program in "$@"; do
    echo "=== $(basename "$program") on $spec $placement"
    status=0
    "$cluster" run "$spec" "$placement" "$program" </dev/null || status=$?
    if ((status != 0)); then
        echo "FAILED: $(basename "$program") on $spec $placement ended with status $status"
        failures=$((failures + 1))
    fi
done

((failures == 0)) || {
    echo "$failures of $# programs failed"
    exit 1
}
