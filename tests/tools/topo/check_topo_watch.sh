#!/usr/bin/env bash
# fsdp-topo --watch: so many looks as were asked for, in plain lines where no one is at a terminal; SIGINT is a good end.
#
#   check_topo_watch.sh PROGRAM FOLDER_OF_NODES MPIEXEC [FLAG]...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../../support/check.sh"

program=$1
shift 2

looks() {
    grep -Ec '^[0-9]{2}:[0-9]{2}:[0-9]{2} .+: [0-9]+ cores?, [0-9]+% busy, memory [0-9.]+/[0-9.]+ GiB$' "$folder/out" || true
}

"$program" --watch --count 3 --interval 0.05 >"$folder/out" 2>"$folder/err" || fail "alone, it fails"
[[ $(looks) -eq 3 ]] || fail "alone, not 3 looks"
grep -Eq '^  NUMA node [0-9]+: ([0-9]+%|-) busy, memory ' "$folder/out" || fail "no NUMA node"
! grep -q $'\033' "$folder/out" || fail "a terminal's codes, and there is no terminal"

"$@" "$program" --watch --count 2 --interval 0.05 >"$folder/out" 2>"$folder/err" </dev/null || fail "under mpiexec, it fails"
[[ $(looks) -eq 2 && ! -s $folder/err ]] || fail "under mpiexec, not 2 looks"
[[ $(grep -Ec '^ +[01]  .* [0-9.]+/[0-9.]+ GiB  [-0-9,]+.?$' "$folder/out") -eq 4 ]] || fail "not a line for each rank and look"
! grep -q $'\033' "$folder/out" || fail "a terminal's codes under mpiexec, and there is no terminal"

: >"$folder/out" # the loop below must not see what is there from before
"$program" --watch --interval 600 >"$folder/out" 2>"$folder/err" &
watcher=$!
while kill -0 "$watcher" 2>/dev/null && [[ $(looks) -eq 0 ]]; do
    sleep 0.1 # until it has printed: it listens to signals by then
done
kill -INT "$watcher"
status=0
wait "$watcher" || status=$?
[[ $status -eq 0 && $(looks) -eq 1 && ! -s $folder/err ]] || fail "SIGINT ends it with $status"
