#!/usr/bin/env bash
# Ranks are where they were asked for, each host is a node of its own to MPI, variables reach all ranks, and failures
# come back. On a cluster of four hosts that is up:
#
#   check_placement.sh PROBE
set -euo pipefail

cluster=$(dirname "${BASH_SOURCE[0]}")/cluster.sh
probe=$1
failures=0
export FSDP_TIMEOUT_S=77 OMPI_COLOUR=red

complain() {
    echo "FAILED: $1"
    failures=$((failures + 1))
}

# placed "HOST_OF_RANK_0 HOST_OF_RANK_1 ..." RUN_ARGUMENT...
placed() {
    local expected='' rank=0 host lowest=() found
    for host in $1; do
        : "${lowest[host]:=$rank}"
        expected+="rank $rank on $FSDP_CLUSTER_ID-host$host, node of rank ${lowest[host]},"
        expected+=" FSDP_TIMEOUT_S=77 OMPI_COLOUR=red"$'\n'
        rank=$((rank + 1))
    done
    shift
    found=$("$cluster" run "$@" "$probe" nodes </dev/null)
    if [[ $found == "${expected%$'\n'}" ]]; then
        echo "$*: as asked for"
    else
        complain "run $*: expected, and found:"
        diff <(printf %s "$expected") <(echo "$found") || true
    fi
}

# ends STATUS REGEX ARGUMENT...: cluster.sh ends so, and prints a line that matches
ends() {
    local expected=$1 regex=$2 status=0 output
    shift 2
    output=$("$cluster" "$@" 2>&1 </dev/null) || status=$?
    if [[ $status -eq $expected ]] && grep -Eq -- "$regex" <<<"$output"; then
        echo "$*: status $status"
    else
        complain "'$*' ended with status $status, not $expected, or without '$regex':"
        echo "$output"
    fi
}

placed "0 0 1 1 2 2 3 3" 4x2
placed "0 1 2 3 0 1 2 3" 4x2 --by-node
placed "0 1 1 1 2 2" 1,3,2 --by-slot
placed "0 1 2 1 2 1" 1,3,2 --by-node
placed "0 1" 2x1

ends 3 'Exit code: +3' run 2x2 "$probe" fail
ends 1 "'5x1' names 5 hosts, but cluster '.*' has 4" run 5x1 "$probe" nodes
ends 2 "HOST_SPEC is '4x0'" run 4x0 "$probe" nodes
ends 2 "HOST_SPEC is '1,,2'" run 1,,2 "$probe" nodes
ends 2 "a program" run 4x2
# shellcheck disable=SC2016 # for the bash on the host to expand
ends 0 "^$FSDP_CLUSTER_ID-host2 a  b$" enter 2 bash -c 'echo "$(hostname) $1"' bash "a  b"
ends 1 "has no host '.*-host4', but 4 hosts" enter 4 true
ends 1 "is up already" up
ends 2 "unknown option '--colour'" with --colour red -- true
ends 2 "--hosts is '65'; use 1 to 64" up --hosts 65
ends 2 "--rate is 'fast'" up --rate fast
ends 2 "unknown subcommand 'upp'" upp
ends 0 "^Usage: " --help

((failures == 0))
