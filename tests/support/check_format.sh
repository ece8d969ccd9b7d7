#!/usr/bin/env bash
# Checks that the sources are formatted as .clang-format says; --fix formats them.
#
#   check_format.sh [--fix]
#
# Exits with 77 if there is no clang-format.
set -euo pipefail

CDPATH='' cd "$(dirname "$0")/../.."
if ! command -v clang-format >/dev/null; then
    echo "skipped: no clang-format"
    exit 77
fi

folders=()
for folder in include kernels lib collectives shard checkpoint cli bench tools topo tests mpi-examples; do
    [[ ! -d $folder ]] || folders+=("$folder")
done

wrong=0
while IFS= read -r -d '' file; do
    if [[ ${1-} == --fix ]]; then
        clang-format -i "$file"
    elif ! clang-format "$file" | diff -U0 "$file" - >/dev/null; then
        echo "$file is not formatted as .clang-format says"
        wrong=1
    fi
done < <(find "${folders[@]}" \( -name '*.[ch]' -o -name '*.cpp' \) -print0)
((wrong == 0)) || echo "to format all: tests/support/check_format.sh --fix"
exit "$wrong"
