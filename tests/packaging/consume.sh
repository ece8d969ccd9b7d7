#!/usr/bin/env bash
# Uses the installed packages as programs in C, C++ and Fortran do: builds each with pkg-config or CMake, and runs it on 2 ranks.
#
#   consume.sh SOURCE      the folder of a checkout, for the programs; everything else comes from the packages
set -euo pipefail

source=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
launch=(mpirun --oversubscribe -n 2)

# expect COUNT LINE COMMAND...: so many lines of its output match
expect() {
    local count=$1 line=$2 output
    shift 2
    output=$("$@")
    echo "$output"
    [[ $(grep -cE "$line" <<<"$output") == "$count" ]] || { echo "not $count lines with '$line': $*"; exit 1; }
}

cd "$folder"
# shellcheck disable=SC2046 # several flags
cc "$source/tests/install/consumer.c" $(pkg-config --cflags --libs fsdp) -o with_pkg_config
expect 2 'has the sum 2$' "${launch[@]}" ./with_pkg_config

cp "$source/tests/install/consumer.cmake" CMakeLists.txt
for language in C:consumer.c CXX:consumer.cpp; do
    cp "$source/tests/install/${language#*:}" .
    cmake -S . -B "build_${language%:*}" "-DLANGUAGE=${language%:*}" "-DSOURCE=${language#*:}" >/dev/null
    cmake --build "build_${language%:*}" >/dev/null
    expect 2 'has the sum 2$' "${launch[@]}" "./build_${language%:*}/consumer"
done

mpifort /usr/share/doc/fsdp/docs/listings/from_fortran.f90 -lfsdp -o from_fortran
expect 1 '^ *the sum is +3[.]0*$' "${launch[@]}" ./from_fortran

# shellcheck disable=SC2046
gfortran "$source/tests/install/consumer.f90" $(pkg-config --cflags --libs fsdp-fortran) -o with_module
expect 2 'has the sum 2$' "${launch[@]}" ./with_module

# docs/fortran.md's training loop, as a newcomer builds it.
# shellcheck disable=SC2046
gfortran /usr/share/doc/fsdp/docs/listings/first_model.f90 $(pkg-config --cflags --libs fsdp-fortran) -o first_model
expect 1 '^step 1500 [|] loss 0[.]00' "${launch[@]}" ./first_model

cp -r /usr/share/doc/fsdp/examples .
# shellcheck disable=SC2046
cc examples/01_hello_collectives.c $(pkg-config --cflags --libs fsdp) -o hello
"${launch[@]}" ./hello
"${launch[@]}" fsdp-bench --begin 8 --end 1K --factor 128 --no-twin --repeat 1 --memory-rate 10G >/dev/null
fsdp-topo | head -n 3
echo "the packages serve C, C++ and Fortran"
