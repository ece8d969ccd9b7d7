#!/usr/bin/env bash
# Checks that the GPU's sources compile for CUDA, without a warning.
#
#   check_cuda_compiles.sh ROOT CC MPI_INCLUDE_FOLDER...
#
# Exits with 77 if there is no CUDA toolkit, or one that lacks a part: headers, or nvcc's own programs.
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
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT

echo '#include <cuda_runtime_api.h>' >"$objects/probe.cu"
if ! "$nvcc" -c "$objects/probe.cu" -o "$objects/probe.o" >"$objects/said" 2>&1; then
    echo "skipped: $nvcc does not compile a file that only includes cuda_runtime_api.h: $(head -n 1 "$objects/said")"
    exit 77
fi
# nvcc alone knows where its headers are: it may be a script that calls another one.
header=$("$nvcc" -M "$objects/probe.cu" | grep -o '[^ ]*/cuda_runtime_api\.h' | head -n 1)

includes=(-I"$root" -I"$root/include" -DFSDPI_GPU_CUDA)
for source in $(grep -rlE --include='*.c' 'kernels/hip/runtime.h|device/gpu_runtime.h' \
    "$root"/lib "$root"/bench "$root"/mpi-examples); do
    "$cc" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wconversion -Werror "${includes[@]}" "${mpi[@]}" \
        -isystem "$(dirname "$header")" -fsyntax-only "$source"
done
flags=(-x cu -std=c++17 -fmad=false -Xcompiler=-Wall,-Wextra,-Werror -Werror=all-warnings)
for source in "$root"/kernels/hip/*.cpp "$root"/mpi-examples/*/*.cpp; do
    "$nvcc" "${flags[@]}" "${includes[@]}" -c "$source" -o "$objects/$(basename "$source").o"
done
echo "compiled by $("$nvcc" --version | tail -n 1)"
