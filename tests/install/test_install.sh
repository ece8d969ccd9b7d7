#!/usr/bin/env bash
# Installs the built library, moves the installed tree, and uses it from there as its users do.
#
#   test_install.sh SETTINGS tree | programs | pages | examples | listing | cmake c|cxx | pkgconfig c|cxx | symbols |
#                            soname | other_mpi | fortran | module cmake|pkgconfig | static |
#                            drop_in
#
# SETTINGS is the file that settings.sh.in becomes. Exits with 77 if there is no compiler for the language.
# shellcheck disable=SC2154 # the settings are assigned in SETTINGS
set -euo pipefail

# shellcheck source=/dev/null
. "$1"
prefix="$work/the moved prefix"

fail() {
    echo "$1"
    exit 1
}

# compiler_of c|cxx: sets compiler, source_file and language
compiler_of() {
    if [[ $1 == c ]]; then
        compiler=$cc source_file=consumer.c language=C
    else
        compiler=$cxx source_file=consumer.cpp language=CXX
    fi
    if ! command -v "$compiler" >/dev/null; then
        echo "skipped: there is no compiler '$compiler'"
        exit 77
    fi
}

install_tree() {
    rm -rf "$work/first" "$prefix"
    "$cmake" --install "$build" --config "$config" --prefix "$work/first" >/dev/null
    mv "$work/first" "$prefix"
    if grep -rIlF -e "$source" -e "$work/first" "$prefix"; then
        fail "these installed files name the folder of the sources, or where they were installed before the move"
    fi
}

# They find the library without being told where it is.
run_programs() {
    local program output
    for program in fsdp-bench fsdp-ckpt fsdp-plan fsdp-run fsdp-top fsdp-topo fsdp-why; do
        output=$("${launch[@]}" "$prefix/$bindir/$program" --help) || fail "$program does not run"
        grep -q "^usage: .*$program" <<<"$output" || fail "$program prints no help"
    done
}

# All pages, and the license, are under share/doc.
check_pages() {
    local page
    cd "$source"
    for page in README.md LICENSE CONTRIBUTING.md CITATION.cff docs/*.md docs/listings/*; do
        cmp -s "$page" "$prefix/$docdir/$page" || fail "$page is not installed as it is"
    done
}

# with_library COMMAND...: starts it on 2 ranks
with_library() {
    LD_LIBRARY_PATH="$prefix/$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "${launch[@]}" "$@"
}

# pkgconfig_flags [NAME]: sets flags to what pkg-config says of the installed library
pkgconfig_flags() {
    export PKG_CONFIG_PATH="$prefix/$libdir/pkgconfig"
    # pkg-config escapes the spaces of the prefix for the shell, which has to see them
    eval "flags=($("$pkg_config" --cflags --libs "${1-fsdp}"))"
}

# The examples of one file compile from where they are installed; all are built by what is installed beside them.
build_examples() {
    local name flags folder="$work/examples" names=(03_gpt 04_fashion_mnist 05_gpu_mlp) more=()
    compiler_of c
    pkgconfig_flags
    mkdir -p "$folder"
    for name in 01_hello_collectives 02_linear_regression; do
        # shellcheck disable=SC2086 # several flags
        "$compiler" $sanitize "$prefix/$docdir/examples/$name.c" "${flags[@]}" -o "$folder/$name"
        with_library "$folder/$name"
    done
    rm -rf "$folder/build"
    if [[ -n $fortran ]]; then
        names+=(07_shallow_water)
        more=("-DCMAKE_Fortran_COMPILER=$fortran")
    fi
    "$cmake" -S "$prefix/$docdir/examples" -B "$folder/build" -DCMAKE_PREFIX_PATH="$prefix" "-DCMAKE_C_COMPILER=$compiler" \
        "-DCMAKE_C_FLAGS=$sanitize" -DCMAKE_BUILD_TYPE=Debug ${more[@]+"${more[@]}"}
    "$cmake" --build "$folder/build" --parallel 2
    for name in "${names[@]}"; do
        grep -q -- "--strategy" <<<"$(with_library "$folder/build/$name/$name" --help)" || fail "$name prints no help"
    done
}

# The CMakeLists.txt that the pages show builds the simulation that they show.
build_listing() {
    local folder="$work/listing" output
    compiler_of c
    rm -rf "$folder"
    mkdir -p "$folder"
    cp "$prefix/$docdir/docs/listings/simulation.cmake" "$folder/CMakeLists.txt"
    cp "$prefix/$docdir/docs/listings/in_simulation.c" "$folder/simulation.c"
    "$cmake" -S "$folder" -B "$folder/build" -DCMAKE_PREFIX_PATH="$prefix" "-DCMAKE_C_COMPILER=$compiler" "-DCMAKE_C_FLAGS=$sanitize"
    "$cmake" --build "$folder/build"
    output=$(with_library "$folder/build/simulation")
    echo "$output"
    grep -qxF "learned 0.200 0.600 0.200" <<<"$output" || fail "the simulation has learned nothing"
}

# Runs the consumer on 2 ranks and looks at what it prints.
run_consumer() {
    local output
    program=$1
    output=$(with_library "$1")
    echo "$output"
    for rank in 0 1; do
        grep -qxF "libfsdp $version: rank $rank has the sum 2" <<<"$output" || fail "rank $rank did not print the sum"
    done
}

consume_with_cmake() {
    local folder="$work/cmake_$1"
    compiler_of "$1"
    rm -rf "$folder"
    mkdir -p "$folder"
    cp "$source/tests/install/$source_file" "$folder"
    cp "$source/tests/install/consumer.cmake" "$folder/CMakeLists.txt"
    "$cmake" -S "$folder" -B "$folder/build" -DLANGUAGE=$language -DSOURCE=$source_file -DCMAKE_PREFIX_PATH="$prefix" \
        "-DCMAKE_${language}_COMPILER=$compiler" "-DCMAKE_${language}_FLAGS=$sanitize"
    "$cmake" --build "$folder/build"
    run_consumer "$folder/build/consumer"
}

consume_with_pkgconfig() {
    local folder="$work/pkgconfig_$1" flags
    compiler_of "$1"
    mkdir -p "$folder"
    pkgconfig_flags
    [[ $("$pkg_config" --modversion fsdp) == "$version" ]] || fail "fsdp.pc has another version than $version"
    echo "$compiler $source_file ${flags[*]}"
    # shellcheck disable=SC2086 # several flags
    "$compiler" $sanitize "$source/tests/install/$source_file" "${flags[@]}" -o "$folder/consumer"
    run_consumer "$folder/consumer"
}

# What is exported is what the headers declare: no less, no more.
check_symbols() {
    [[ $shared == ON ]] || { echo "skipped: the library is static"; exit 77; }
    local library="$prefix/$libdir/libfsdp.so"
    "$nm" -D --defined-only "$library" | awk '{print $NF}' | sed 's/@.*//' | sort -u >"$work/exported"
    grep -hv '^#' "$prefix"/include/fsdp/*.h | tr '\n' ' ' | grep -oE 'FSDP_API [^;(]*\(' |
        sed -E 's/.*[ *](fsdp_[a-z0-9_]+) *\($/\1/' | sort -u >"$work/declared"
    [[ -s $work/declared ]] || fail "no FSDP_API function was found in the headers"
    diff "$work/declared" "$work/exported" ||
        fail "'<' is declared but not exported by $library, '>' is exported but not declared"
    echo "$(wc -l <"$work/exported") functions"
}

# The name that programs look for has the minor version in it. No GPU runtime is needed to start them.
check_soname() {
    [[ $shared == ON ]] || { echo "skipped: the library is static"; exit 77; }
    local library="$prefix/$libdir/libfsdp.so" dynamic
    dynamic=$(readelf -d "$library")
    echo "$dynamic"
    ! grep -F "(NEEDED)" <<<"$dynamic" | grep -qF libamdhip64 || fail "the library does not load without HIP"
    grep -qF "Library soname: [libfsdp.so.$soversion]" <<<"$dynamic" || fail "the soname is not libfsdp.so.$soversion"
    [[ -e $prefix/$libdir/libfsdp.so.$soversion ]] || fail "libfsdp.so.$soversion is not installed"
}

# Sets other_cc and other_launch to those of the MPI that the library was not built with.
other_mpi() {
    local other=mpich
    [[ $mpi == openmpi ]] || other=openmpi
    other_cc=$(command -v "mpicc.$other") && other_launch=$(command -v "mpiexec.$other") ||
        { echo "skipped: there is no mpicc.$other"; exit 77; }
}

# expect TEXT COMMAND...: it fails and says so
expect_failure() {
    local text=$1 output
    shift
    if output=$("$@" 2>&1); then
        fail "succeeded: $*"
    fi
    echo "$output"
    tr -s '[:space:]' ' ' <<<"$output" | grep -qF "$text" || fail "'$text' is not what is said"
}

# A program compiled with another MPI is refused by the headers, by the CMake package and, where it comes so far, by fsdp_init().
refuse_other_mpi() {
    local folder="$work/other_mpi" says="libfsdp was built with"
    other_mpi
    rm -rf "$folder"
    mkdir -p "$folder/project"
    expect_failure "$says" "$other_cc" -fsyntax-only -I "$prefix/include" "$source/tests/install/consumer.c"

    cp "$source/tests/install/consumer.c" "$folder/project"
    cp "$source/tests/install/consumer.cmake" "$folder/project/CMakeLists.txt"
    expect_failure "$says" "$cmake" -S "$folder/project" -B "$folder/build" -DLANGUAGE=C -DSOURCE=consumer.c \
        -DCMAKE_PREFIX_PATH="$prefix" "-DCMAKE_C_COMPILER=$cc" "-DMPI_C_COMPILER=$other_cc"

    [[ $shared == ON && -z $sanitize ]] || return 0
    "$other_cc" -I "$source/include" "$source/tests/install/consumer.c" -L "$prefix/$libdir" -lfsdp -o "$folder/consumer"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    LD_LIBRARY_PATH="$prefix/$libdir" expect_failure "fsdp_init: $says" "$other_launch" -n 1 "$folder/consumer"
}

# A static library, by the commands of the pages: programs need nothing of it where they run. Not optimized, to be built soon.
build_static() {
    local folder="$work/static"
    "$cmake" -S "$source" -B "$folder/build" -DBUILD_SHARED_LIBS=OFF -DFSDP_BUILD_TESTS=OFF -DFSDP_BUILD_EXAMPLES=OFF \
        -DFSDP_HIP=OFF -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS=-O0 $sanitize" "-DCMAKE_C_COMPILER=$cc" \
        "-DCMAKE_C_COMPILER_LAUNCHER=$launcher" "-DMPI_C_COMPILER=$mpicc" >/dev/null
    "$cmake" --build "$folder/build" --parallel 2 >/dev/null
    rm -rf "$folder/the prefix"
    "$cmake" --install "$folder/build" --prefix "$folder/the prefix" >/dev/null
    prefix="$folder/the prefix"
    [[ -e $prefix/$libdir/libfsdp.a && ! -e $prefix/$libdir/libfsdp.so ]] || fail "the library is not static"
    "$prefix/$bindir/fsdp-ckpt" --help >/dev/null
    for way in cmake pkgconfig; do
        "consume_with_$way" c
        ! ldd "$program" | grep "libfsdp[.]so" || fail "the program of $way looks for the shared library"
    done
}

# The program that the pages show.
call_from_fortran() {
    local fortran=${mpicc/mpicc/mpifort} output
    command -v "$fortran" >/dev/null || { echo "skipped: there is no compiler '$fortran'"; exit 77; }
    mkdir -p "$work/fortran"
    # shellcheck disable=SC2086 # several flags
    "$fortran" $sanitize "$prefix/$docdir/docs/listings/from_fortran.f90" -J "$work/fortran" -L "$prefix/$libdir" -lfsdp \
        -o "$work/fortran/from_fortran"
    # gfortran's library copies texts that end without a 0, with strndup(); that is allowed
    output=$(ASAN_OPTIONS="${ASAN_OPTIONS:-}:strict_string_checks=0" with_library "$work/fortran/from_fortran")
    echo "$output"
    [[ $(grep -cE '^ *the sum is +3[.]0*$' <<<"$output") == 1 ]] || fail "the sum of ranks 1 and 2 is not printed"
}

# Programs that use the module of Fortran: the page's with CMake, and a small one with pkg-config.
use_module() {
    local folder="$work/module_$1" flags output
    [[ -n $fortran ]] || { echo "skipped: the module of Fortran was not built"; exit 77; }
    rm -rf "$folder"
    mkdir -p "$folder"
    if [[ $1 == cmake ]]; then
        cp "$prefix/$docdir/docs/listings/fortran.cmake" "$folder/CMakeLists.txt"
        cp "$prefix/$docdir/docs/listings/first_model.f90" "$folder"
        "$cmake" -S "$folder" -B "$folder/build" -DCMAKE_PREFIX_PATH="$prefix" "-DCMAKE_C_COMPILER=$cc" \
            "-DCMAKE_Fortran_COMPILER=$fortran"
        "$cmake" --build "$folder/build"
        output=$(with_library "$folder/build/model")
        echo "$output"
        grep -qE "^step 1500 [|] loss 0[.]00" <<<"$output" || fail "the model has learned nothing"
    else
        pkgconfig_flags fsdp-fortran
        echo "$fortran consumer.f90 ${flags[*]}"
        "$fortran" "$source/tests/install/consumer.f90" "${flags[@]}" -o "$folder/consumer"
        run_consumer "$folder/consumer"
    fi
}

# What can be preloaded names MPI's functions only, and is found with the engine beside it. That calls PMPI_* only.
preload_drop_in() {
    local library="$prefix/$libdir/libfsdp_mpi.so" engine="$prefix/$libdir/libfsdp_mpi_engine.so" folder="$work/drop_in" names
    [[ -e $engine ]] || fail "$engine is not installed"
    ! readelf -d "$library" "$engine" | grep -F "(NEEDED)" | grep -E "libmpi|libfsdp" || fail "it brings an MPI or a library along"
    names=$("$nm" -D --defined-only "$library" | awk '{print $NF}' | grep -vE '^(MPI|mpi)_' || true)
    [[ -z $names ]] || fail "it takes the place of: $names"
    names=$("$nm" -D --defined-only "$engine" | awk '{print $NF}' | grep -vx fsdpi_engine_start || true)
    [[ -z $names ]] || fail "the engine exports: $names"
    names=$("$nm" -D --undefined-only "$engine" | awk '{print $NF}' | grep -E '^(MPI_|fsdp)' || true)
    [[ -z $names ]] || fail "the engine calls: $names"

    mkdir -p "$folder"
    "$mpicc" "$source/tests/tools/preload/odd.c" -o "$folder/odd"
    rm -f "$folder/report"
    # by its name alone: the list in LD_PRELOAD is divided by spaces
    FSDP_MPI_REPORT="$folder/report" FSDP_MPI_AFTER=0 with_library env LD_PRELOAD=libfsdp_mpi.so "$folder/odd" sum
    grep -E '^allreduce +<4M +2 +2097152 +2 +0 ' "$folder/report" || fail "the calls are not taken"
}

case $2 in
tree) install_tree ;;
programs) run_programs ;;
pages) check_pages ;;
examples) build_examples ;;
listing) build_listing ;;
cmake) consume_with_cmake "$3" ;;
pkgconfig) consume_with_pkgconfig "$3" ;;
symbols) check_symbols ;;
soname) check_soname ;;
other_mpi) refuse_other_mpi ;;
fortran) call_from_fortran ;;
module) use_module "$3" ;;
static) build_static ;;
drop_in) preload_drop_in ;;
*) fail "unknown part '$2'" ;;
esac
