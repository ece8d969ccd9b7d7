#!/usr/bin/env bash
# Runs clang-tidy, as .clang-tidy says, on all sources of a build.
#
#   check_tidy.sh BUILD_FOLDER [SOURCE...]
#
# BUILD_FOLDER holds compile_commands.json. Exits with 77 if there is no clang-tidy.
set -euo pipefail

build=$1
shift
if ! command -v clang-tidy >/dev/null; then
    echo "skipped: no clang-tidy"
    exit 77
fi

sources() {
    if (($# > 0)); then
        printf '%s\0' "$@"
    else
        sed -nE 's/^ *"file": "(.*)",?$/\1/p' "$build/compile_commands.json" | sort -u | tr '\n' '\0'
    fi
}

# clang-tidy does not know these flags of GCC's
mkdir -p "$build/tidy"
sed 's/ -fno-thread-jumps//g; s/ -ffat-lto-objects//g' "$build/compile_commands.json" >"$build/tidy/compile_commands.json"
sources "$@" | xargs -0 -r -n 2 -P "$(nproc)" clang-tidy -p "$build/tidy" --quiet
