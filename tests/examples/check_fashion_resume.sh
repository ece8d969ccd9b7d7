#!/usr/bin/env bash
# check_resume.sh for 04_fashion_mnist, whose images it makes.
#
#   check_fashion_resume.sh RANKS PROGRAM MPIEXEC NUMPROC_FLAG [MPIEXEC_FLAG]...
set -euo pipefail

# shellcheck source=tests/examples/fashion_files.sh
. "$(dirname "$0")/fashion_files.sh"

ranks=$1
shift
images=$(mktemp -d)
trap 'rm -rf "$images"' EXIT
fashion_files "$images" 107 23
"$(dirname "$0")/check_resume.sh" "$ranks" 2 9 "$@" -- --data "$images" --epochs 3 --warmup 4 --lr 0.01 --batch 22
