#!/usr/bin/env bash
# Wrong options of fsdp-bench: one line that names the option, exit status 2, and no hang.
#
#   check_bench_options.sh PROGRAM MPIEXEC [FLAG]...
set -euo pipefail

program=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# wrong PATTERN OPTION...: the line that must be printed, once
wrong() {
    local pattern=$1 status=0
    shift
    timeout $((120 * ${TEST_TIME_FACTOR:-1})) "${run[@]}" "$program" "$@" >"$log" 2>&1 </dev/null || status=$?
    if [[ $status -ne 2 || $(grep -c '^fsdp-bench: ' "$log") -ne 1 ]] || ! grep -qE "^fsdp-bench: $pattern" "$log"; then
        cat "$log"
        echo "check_bench_options.sh: '$*' ended with $status; wanted 2 and one line 'fsdp-bench: $pattern'"
        exit 1
    fi
}
run=("$@")

wrong "--begin is '12x'; give a whole number" --begin 12x
wrong "--begin is '99999999999999999999'; give" --begin 99999999999999999999
wrong "--begin is 2048, above --end 1024; use" --begin 2K --end 1K
wrong "--factor is '1'; give" --factor 1
wrong "--collective has 'gather'; use" --collective allgather,gather
wrong "--dtype is 'f8'; use f64, f32" --dtype f8
wrong "--op is 'mean'; use sum, avg" --op mean
wrong "--memory is 'gpu'; use symmetric" --memory gpu
wrong "--result is shared, which --memory user cannot be; use" --result shared --memory user
wrong "--repeat is '0'; give" --repeat 0
wrong "--iterations is '-3'; give" --iterations -3
wrong "--thread-level is ''; use multiple" --thread-level=
wrong "--overlap, --floor, --async, --lanes, --record, --drop-in, --shards, --step, --checkpoint, --pipeline, --kernels, --tune and --algorithms are runs of their own; use one" --overlap --shards
wrong "--overlap, --floor, --async, --lanes, --record, --drop-in, --shards, --step, --checkpoint, --pipeline, --kernels, --tune and --algorithms are runs of their own; use one" --step --shards
wrong "--units is '0'; give" --step --units 0
wrong "--unit-params is '0'; give" --step --unit-params 0
wrong "--compute-us is '1.5'; give a whole number" --step --compute-us 1.5
wrong "--strategy is 'ZERO'; use full_shard[|]no_shard[|]shard_grad_op" --step --strategy ZERO
wrong "--overlap, --floor, --async, --lanes, --record, --drop-in, --shards, --step, --checkpoint, --pipeline, --kernels, --tune and --algorithms are runs of their own; use one" --step --checkpoint x
wrong "--state-bytes is '0'; give" --state-bytes 0
wrong "--checkpoint is '/nowhere', where no folder can be made: No such file or directory; name another" --checkpoint /nowhere
wrong "--dtype is i32, which no model has; use f32, bf16 or f16" --step --dtype i32
wrong "--osu is for --drop-in; give that too" --osu
wrong "--drop-in times MPI's calls at thread level single; leave out --result and" --drop-in x --thread-level single
for mode in overlap step "drop-in x" "checkpoint x" tune=x algorithms; do
    # shellcheck disable=SC2086 # two words
    wrong "--device is gpu, but --${mode%%[ =]*} works on host memory; leave out one of them" --device gpu --$mode
done
wrong "--device is 'hip'; use host" --device hip
wrong "--memory-rate is '0'; give a whole number" --memory-rate 0
wrong "--memory-rate is of the host's memory, and --device is gpu; leave out one of them" --device gpu --memory-rate 1G
wrong "--result is shared, which memory of GPUs cannot be; use --result private" --device gpu --result shared
wrong "--kernels times kernels of a GPU; use --device gpu with it" --kernels
wrong "--overlap, --floor, .* are runs of their own; use one" --device gpu --kernels --shards
wrong "--floor takes two ranks on two nodes, and here are 2 on 1; start one rank on each of two hosts, or two on this one with FSDP_NODE_SIZE=1" --floor
run=("$@" env FSDP_PROGRESS=inline)
wrong "--async measures the progress thread, and there is none; leave out FSDP_PROGRESS, and use an MPI" --async
run=("$@" env FSDP_RECORD=0)
wrong "--async takes from the flight recorder when an operation ended, and there is none; leave out FSDP_RECORD" --async
run=("$@")
wrong "--plot is 'x.svg', but only the plain sweep" --step --plot x.svg
wrong "--nodes is '1'; give a whole number" --algorithms --nodes 1
wrong "--nodes is 'many'; give a whole number" --algorithms --nodes many
wrong "--alpha is '0'; give" --algorithms --nodes 4 --alpha 0
wrong "--beta is 'fast'; give" --algorithms --nodes 4 --beta fast
wrong "--ranks-per-node is '0'; give" --algorithms --nodes 4 --ranks-per-node 0
wrong "--nodes is for --algorithms on nodes that are made up; give --algorithms and --nodes with it" --nodes 4
wrong "--beta is for --algorithms on nodes that are made up; give --algorithms and --nodes with it" --algorithms --beta 3
wrong "--end needs a value; --help" --end
wrong "option '--size' is unknown; --help" --size
wrong "argument '8M' belongs to no option; --help" 8M
wrong "--baseline-server is for fsdp-bench itself" --baseline-server
