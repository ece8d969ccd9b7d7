#!/usr/bin/env bash
# Checks that the sources are formatted as .clang-format says; --fix formats them.
#
#   check_format.sh [--fix]
#
# Each version of clang-format lays out some lines otherwise; the sources are laid out as version 14 does. Exits with 77 if that is
# not there, as `clang-format-14` or `clang-format`, or no python3.
set -euo pipefail

CDPATH='' cd "$(dirname "$0")/../.."
readonly version=14
format=clang-format-$version
command -v "$format" >/dev/null || format=clang-format
if ! command -v "$format" >/dev/null; then
    echo "skipped: no clang-format"
    exit 77
fi
if ! "$format" --version | grep -q " version $version[.]"; then
    echo "skipped: $("$format" --version) lays out some lines otherwise than version $version"
    exit 77
fi
if ! command -v python3 >/dev/null; then
    echo "skipped: no python3, which check_rooms.py needs to name the folders"
    exit 77
fi

mapfile -t folders < <(tests/support/check_rooms.py --folders)
((${#folders[@]} > 0)) || { echo "check_rooms.py names no folders"; exit 1; }

how=(--dry-run -Werror)
[[ ${1-} != --fix ]] || how=(-i)
find "${folders[@]}" \( -name '*.[ch]' -o -name '*.cpp' \) -print0 | xargs -0 "$format" "${how[@]}" || {
    echo "to format all: tests/support/check_format.sh --fix"
    exit 1
}
