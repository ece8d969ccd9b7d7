#!/usr/bin/env bash
# Checks that the GPU's sources compile for CUDA, without a warning.
#
#   check_cuda_compiles.sh ROOT CC MPI_INCLUDE_FOLDER...
#
# Exits with 77 if there is no CUDA toolkit.
set -euo pipefail

root=$1
cc=$2
shift 2
mpi=("${@/#/-isystem}")

nvcc=$(command -v nvcc || echo "${CUDA_PATH:-/usr/local/cuda}/bin/nvcc")
if [[ ! -x $nvcc ]]; then
    echo "skipped: no nvcc"
    exit 77
fi
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT

includes=(-I"$root" -I"$root/include" -DFSDPI_GPU_CUDA)
for source in $(grep -l 'kernels/hip/runtime.h' "$root"/lib/device/*.c); do
    "$cc" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wconversion -Werror "${includes[@]}" "${mpi[@]}" \
        -isystem "$cuda/include" -fsyntax-only "$source"
done
flags=(-x cu -std=c++17 -fmad=false -Xcompiler=-Wall,-Wextra,-Werror -Werror=all-warnings)
for source in "$root"/kernels/hip/*.cpp; do
    "$nvcc" "${flags[@]}" "${includes[@]}" -c "$source" -o "$objects/$(basename "$source").o"
done
echo "compiled by $("$nvcc" --version | tail -n 1)"
