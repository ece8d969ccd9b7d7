#!/usr/bin/env bash
# What writes files compiles for little-endian machines only, and says so.
#
#   check_byte_order.sh COMPILER SOURCE
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../../support/check.sh"

compiler=$1 source=$2

compile() {
    echo '#include "shard/checkpoint/format/safetensors.h"' |
        "$compiler" -std=c11 -I "$source" -I "$source/include" "$@" -fsyntax-only -x c - >"$folder/out" 2>&1
}

compile || fail "it does not compile for this machine"
! compile -U__BYTE_ORDER__ -D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__ || fail "it compiles for a big-endian machine"
grep -q 'checkpoints need a little-endian machine' "$folder/out" || fail "that is not what is wrong"
