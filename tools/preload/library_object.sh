#!/usr/bin/env bash
# Makes one object of many, in which every use of MPI_* has become one of PMPI_*.
#
#   library_object.sh RESULT COMPILER OBJCOPY NM OBJECT...
set -euo pipefail

result=$1 compiler=$2 objcopy=$3 nm=$4
shift 4

"$compiler" -r -nostdlib -fno-lto -o "$result.linked" "$@"
"$nm" --undefined-only --format=posix "$result.linked" | awk '$1 ~ /^MPI_/ { print $1, "P" $1 }' >"$result.names"
"$objcopy" --redefine-syms="$result.names" --remove-section='.gnu.lto_*' --remove-section='.gnu.debuglto_*' \
    "$result.linked" "$result"
rm "$result.linked"
