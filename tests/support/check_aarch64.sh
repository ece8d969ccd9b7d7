#!/usr/bin/env bash
# Whether 64-bit Arm's compiler takes the C sources of library and programs without a warning. The headers of MPI and hwloc are those
# of this machine, so nothing can be linked; kernels.aarch64 links and runs what needs neither.
#
#   check_aarch64.sh INCLUDE_FOLDER...    of MPI
#
# Exits with 77 if there is no cross compiler.
set -euo pipefail

CDPATH='' cd "$(dirname "$0")/../.."
readonly compiler=aarch64-linux-gnu-gcc
if ! command -v "$compiler" >/dev/null; then
    echo "skipped: no $compiler; cmake/dependencies.sh aarch64 installs it"
    exit 77
fi

flags=(-std=c11 -D_GNU_SOURCE -fsyntax-only -I. -Iinclude -idirafter /usr/include)
flags+=(-DFSDPI_PRELOAD_VERSION='"0"' -DFSDPI_PRELOAD_MPI='"MPI"' -DFSDPI_PRELOAD_ENGINE='"engine"') # the build's words
flags+=(-Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpedantic -Werror)
for folder in "$@"; do
    flags+=(-isystem "$folder")
done
if multiarch=$(cc -print-multiarch 2>/dev/null) && [[ -n $multiarch ]]; then
    flags+=(-idirafter "/usr/include/$multiarch")
fi

# HIP's headers serve the processors that it runs on; the other kernels are another instruction set's.
find kernels/host lib collectives shard tools bench -name '*.c' ! -name '*_hip.c' ! -name 'avx*.c' -print0 |
    xargs -0 -n 16 -P "$(nproc)" "$compiler" "${flags[@]}"
