#!/usr/bin/env bash
# Checks that what stands in for the HIP runtime, a double or kernels/hip/runtime_library.c, defines every function of it that
# the library calls.
#
#   check_double_is_complete.sh "OBJECT..." "OBJECT_THAT_STANDS_IN..."
set -euo pipefail

read -ra library <<<"${1//;/ }"
read -ra double <<<"${2//;/ }"

called=$(nm -u "${library[@]}" | grep -oE '\bhip[A-Z][A-Za-z0-9_]*' | sort -u)
defined=$(nm --defined-only "${double[@]}" | sed -nE 's/.* T (hip[A-Z].*)/\1/p' | sort -u)
[[ -n $called ]] || { echo "the library calls nothing of the runtime: these are not its objects"; exit 1; }
missing=$(comm -23 <(echo "$called") <(echo "$defined"))
[[ -z $missing ]] || { echo "not in what stands in:" "$missing"; exit 1; }
echo "$(wc -l <<<"$called") functions of the runtime are called, and all are there"
