#!/usr/bin/env bash
# Whatever nodes the ranks form: bitwise the same training under every strategy. Sums are formed in order of the ranks within
# a node, and then over the nodes, so that other nodes may mean other bits: what is held against each other has the same.
# Under HYBRID_SHARD sums are those of FULL_SHARD where its group is a node, and within 1e-6 elsewhere.
#
#   check_gpt_node_shapes.sh RANKS PROGRAM DATA MPIEXEC NUMPROC_FLAG [MPIEXEC_FLAG]...
set -euo pipefail

ranks=$1 program=$2 data=$3 mpiexec=$4 numproc=$5
shift 5
flags=("$@")
# shellcheck source=tests/examples/gpt_runs.sh
. "$(dirname "$0")/gpt_runs.sh"

# run FILE OPTION...
run() {
    local file=$1
    shift
    train "$file" "$ranks" --layers 2 --heads 1 --width 16 --context 16 --batch 12 "$@"
}

# check_strategies SHAPE NODE_SIZE
check_strategies() {
    local strategy group
    run "$folder/full" --strategy full_shard
    for strategy in shard_grad_op shard_optim no_shard; do
        run "$folder/other" --strategy $strategy
        same "full_shard and $strategy on $1" "$folder/full" "$folder/other"
    done
    for ((group = 1; group <= ranks; group++)); do
        ((ranks % group == 0)) || continue
        run "$folder/other" --strategy hybrid_shard --group-size $group
        if ((group == $2 || group == ranks)); then # all ranks in one group: no different from full_shard
            same "full_shard and hybrid_shard in groups of $group on $1" "$folder/full" "$folder/other"
        else
            near "$1, hybrid_shard in groups of $group" "$folder/full" "$folder/other" 1e-6
        fi
    done
    echo "$1: bitwise the same under every strategy"
}

unset FSDP_NODE_SIZE
check_strategies "$ranks ranks in one node" "$ranks"
for size in 1 2 3; do
    ((size < ranks)) || continue
    export FSDP_NODE_SIZE=$size
    check_strategies "$ranks ranks in nodes of $size" $size
done
