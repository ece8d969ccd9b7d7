#!/usr/bin/env bash
# fsdp-topo under mpiexec: every rank's mask as it is, nothing on standard error, and the plan where it differs.
#
#   check_topo_job.sh PROGRAM FOLDER_OF_NODES MPIEXEC [FLAG]...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../../support/check.sh"

program=$1
shift 2

run() {
    "$@" >"$folder/out" 2>"$folder/err" </dev/null || fail "failed: $*"
    [[ ! -s $folder/err ]] || fail "something on standard error: $*"
}

run "$@" "$program"
grep -q '^2 ranks as bound by fsdp_init()$' "$folder/out" || fail "no table of ranks"
grep -Eq '^2 ranks, .*(no problems|problems: )' "$folder/out" || fail "no verdict"
run "$@" "$program" --why
grep -Eq '^  rank 1  [^ ]' "$folder/out" || fail "rank 1 does not say what fsdp_init() did"
[[ $(grep -c '^node ' "$folder/out") -eq 1 ]] || fail "one node is not described once"

# all ranks on one hardware thread
first=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
FSDP_BIND=none run taskset -c "$first" "$@" "$program"
grep -Eq "^ +1  .*  $first  .*overlapping-cores" "$folder/out" || fail "an overlap that is not marked"
grep -Eq '^  overlapping-cores: .*: ranks 0-1$' "$folder/out" || fail "an overlap that is not explained"

# --check: 0 on that one thread, where all ranks have the same by plan too; 3 where each could have its own
FSDP_BIND=none run taskset -c "$first" "$@" "$program" --check
if [[ $(nproc) -gt 1 ]]; then
    status=0
    FSDP_BIND=none "$1" --bind-to none "${@:2}" "$program" --check >"$folder/out" 2>"$folder/err" </dev/null || status=$?
    [[ $status -eq 3 ]] || fail "--check ends with $status where ranks share cores and need not"
    grep -Eq '^2 ranks, .* 2 not as planned, problems: .*overlapping-cores' "$folder/out" || fail "no verdict on ranks elsewhere than planned"
    grep -q '^fsdp-topo: --check: 2 of 2 ranks not where the plan has them' "$folder/err" || fail "--check does not say why it fails"
fi

run "$@" "$program" --json --svg "$folder/svg"
if command -v python3 >/dev/null; then
    python3 - "$folder" <<'PYTHON' || fail "the JSON or the SVG is wrong"
import json, sys, xml.dom.minidom
node, = json.load(open(sys.argv[1] + "/out"))["nodes"]
assert [rank["rank"] for rank in node["ranks"]] == [0, 1]
assert all(rank["real"]["threads"] and rank["binding"] and rank["plan"]["reasons"] for rank in node["ranks"])
xml.dom.minidom.parse(sys.argv[1] + "/svg")
PYTHON
fi

# a plan is rank 0's: it is printed once
run "$@" "$program" --ranks 3
[[ $(grep -c '^3 ranks as planned$' "$folder/out") -eq 1 ]] || fail "a plan is not printed once"

run "$@" "$program" --settings
grep -Eq "^FSDP_TIMEOUT_S +$FSDP_TIMEOUT_S " "$folder/out" || fail "FSDP_TIMEOUT_S=$FSDP_TIMEOUT_S is not shown as in force"
