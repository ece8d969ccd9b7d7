#!/usr/bin/env bash
# fsdp-topo on several nodes: each is described once, in the order of the ranks, with its own ranks. On a cluster of two
# hosts that is up:
#
#   check_topo_nodes.sh CLUSTER_SCRIPT PROGRAM
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../../support/check.sh"

cluster=$1 program=$2

# run HOST_SPEC PLACEMENT OPTION...
run() {
    local spec=$1 placement=$2
    shift 2
    "$cluster" run "$spec" "$placement" "$program" "$@" 2>&1 </dev/null | tr -d '\r' >"$folder/out" || fail "failed"
}

# rows EXPECTED: the nodes, and the ranks in their tables
rows() {
    local found
    found=$(sed -nE "s/^node $FSDP_CLUSTER_ID-(host[0-9]): .*/\1/p; /^2 ranks as bound/,/^problems/s/^ +([0-9])  none .*/\1/p" \
        "$folder/out" | tr '\n' ' ')
    [[ $found == "$1 " ]] || fail "expected '$1', found '$found'"
}

run 2x2 --by-slot
rows "host0 0 1 host1 2 3"
[[ $(grep -Ec '^2 ranks, each with [0-9]+ cores?, ' "$folder/out") -eq 2 ]] || fail "not a verdict for each node"
run 2x2 --by-node
rows "host0 0 2 host1 1 3"
run 2x2 --by-slot --watch --count 1
[[ $(grep -Ec "^[0-9:]+ $FSDP_CLUSTER_ID-host[01]: " "$folder/out") -eq 2 ]] || fail "not a look at both nodes"
run 2x2 --by-slot --launch
grep -Eq '^mpirun -n 4 --map-by ppr:2:node ' "$folder/out" || fail "no line for both nodes"
grep -Eq '^srun --nodes=2 --exclusive --ntasks-per-node=2 ' "$folder/out" || fail "no srun line for both nodes"
grep -Eq '^flux run --nodes=2 --exclusive --tasks-per-node=2 ' "$folder/out" || fail "no line of Flux for both nodes"
run 2x2 --by-slot --json
if command -v python3 >/dev/null; then
    sed -n '/^{/,$p' "$folder/out" | python3 -c '
import json, sys
nodes = json.load(sys.stdin)["nodes"]
assert [[rank["rank"] for rank in node["ranks"]] for node in nodes] == [[0, 1], [2, 3]], nodes' || fail "the JSON is wrong"
fi
