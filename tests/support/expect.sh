#!/usr/bin/env bash
# Runs an MPI program and checks how each rank ends and what the program says.
#
#   expect.sh success|failure RANKS [--output=REGEX]... -- MPIEXEC [FLAG]... expect.sh --one-rank PROGRAM [ARGUMENT]...
#
# success: all RANKS ranks exit with 0. failure: all exit with 1 to 123, as a program does on purpose; a crash, a signal
# or a rank that never ends is not the failure that was expected. Each REGEX (grep -E) must match a line of standard
# output or standard error.
#
# The inner `expect.sh --one-rank` prints the status of its rank and exits with 0, or else mpiexec would kill the ranks
# that are still running and hide that they hang.
set -euo pipefail

marker='expect.sh: this rank ended with status'

one_rank() {
    local status=0
    "$@" || status=$?
    echo "$marker $status"
}

fail() {
    echo "expect.sh: $1"
    exit 1
}

check() {
    local expected=$1 ranks=$2
    shift 2
    local patterns=()
    while [[ $1 == --output=* ]]; do
        patterns+=("${1#--output=}")
        shift
    done
    [[ $1 == -- ]] || fail "unknown option '$1'"
    shift

    local status=0 output
    output=$("$@" 2>&1 </dev/null) || status=$?
    printf '%s\n' "$output"
    output=${output//$'\e[K'/} # a progress bar erases itself on standard error, anywhere between two lines of standard output
    output=${output//$'\r'/$'\n'}
    [[ $status -eq 0 ]] || fail "mpiexec ended with status $status"

    local wanted='0'
    [[ $expected == success ]] || wanted='([1-9]|[1-9][0-9]|1[01][0-9]|12[0-3])'
    local count
    count=$(grep -Eoc "$marker $wanted\$" <<<"$output") || true
    [[ $count -eq $ranks ]] || fail "expected $expected on $ranks ranks, found it on $count"

    local pattern
    for pattern in ${patterns[@]+"${patterns[@]}"}; do
        grep -Eq -- "$pattern" <<<"$output" || fail "no line of the output matches '$pattern'"
    done
}

if [[ $1 == --one-rank ]]; then
    shift
    one_rank "$@"
else
    check "$@"
fi
