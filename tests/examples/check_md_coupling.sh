#!/usr/bin/env bash
# Of 06_molecular_dynamics, one file knows both LAMMPS and libfsdp, in at most 100 lines.
#
#   check_md_coupling.sh FOLDER
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"

cd "$1"
mapfile -t both < <(grep -lE '^#include <lammps/' -- *.c *.h | xargs grep -lE '\bfsdp_[a-z]')
[[ ${both[*]} == md_coupling.c ]] || fail "files that know both: ${both[*]}"
lines=$(wc -l <md_coupling.c)
((lines <= 100)) || fail "md_coupling.c has $lines lines"
grep -l 'md_coupling_' -- *.c >/dev/null || fail "nothing uses md_coupling.c"
echo "md_coupling.c: $lines lines"
