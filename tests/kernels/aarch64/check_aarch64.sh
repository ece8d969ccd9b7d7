#!/usr/bin/env bash
# Builds the kernels and their tests for 64-bit Arm, and runs them under qemu: bitwise as the reference, which runs there too.
#
#   check_aarch64.sh FOLDER [long]    FOLDER keeps what has been built, for the next time; long: those that take half a minute
#
# Exits with 77 if there is no cross compiler or no qemu.
set -euo pipefail

here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
readonly here folder=$1 set=${2:-short} compiler=aarch64-linux-gnu-gcc
readonly long=test_reduce_into
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu # where the C library for it is, as Debian has it

for program in "$compiler" qemu-aarch64; do
    if ! command -v "$program" >/dev/null; then
        echo "skipped: no $program; cmake/dependencies.sh aarch64 installs it"
        exit 77
    fi
done
echo 'int main(void) { return 0; }' >"$TMPDIR/nothing.c"
if ! "$compiler" "$TMPDIR/nothing.c" -o "$TMPDIR/nothing" 2>/dev/null || ! qemu-aarch64 "$TMPDIR/nothing"; then
    echo "skipped: $compiler and qemu-aarch64 compile and run no program; cmake/dependencies.sh aarch64 installs the C library"
    exit 77
fi

cmake -S "$here" -B "$folder" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_SYSTEM_NAME=Linux \
    -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER="$compiler"
cmake --build "$folder" --parallel "$(nproc)"

for test in "$folder"/test_*; do
    [[ ${test##*/} == "$long" ]] && of=long || of=short
    [[ $of == "$set" ]] || continue
    echo "${test##*/}"
    qemu-aarch64 "$test" neon >"$TMPDIR/output" || { cat "$TMPDIR/output"; exit 1; }
    cat "$TMPDIR/output"
    if grep 'no neon here' "$TMPDIR/output"; then
        echo "the build for aarch64 has no NEON kernels"
        exit 1
    fi
done
if qemu-aarch64 "$folder/fails"; then
    echo "a program with a failed assertion has passed"
    exit 1
fi
