#!/usr/bin/env bash
# Compiles each public header on its own, twice in a row, and fails on any warning.
#
#   check_header.sh COMPILER c|c++ STANDARDS INCLUDE_FOLDER... -- HEADER...
#
# STANDARDS is a list as `c11 c17`. Exits with 77 if there is no COMPILER.
set -euo pipefail

compiler=$1 language=$2 standards=$3
shift 3
if ! command -v "$compiler" >/dev/null; then
    echo "skipped: there is no compiler '$compiler'"
    exit 77
fi

flags=(-Wall -Wextra -Wshadow -Wpedantic -pedantic-errors -Werror -fsyntax-only -x "$language")
while [[ $1 != -- ]]; do
    flags+=(-isystem "$1")
    shift
done
shift

for standard in $standards; do
    for header in "$@"; do
        name=fsdp/$(basename "$header")
        printf '#include "%s"\n#include "%s"\nextern int a_declaration;\n' "$name" "$name" |
            "$compiler" "-std=$standard" -I"$(dirname "$header")/.." "${flags[@]}" -
    done
done
