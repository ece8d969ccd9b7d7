#!/usr/bin/env bash
# Deletes each wait for a stream or an event that collectives on GPUs make, one at a time, in a copy of the sources, and
# expects that the double of the HIP runtime, or a result, shows it. A mutant that no test notices is named, and the check
# fails.
#
#   check_waits.sh SOURCES BUILD [JOBS]     BUILD: a configured build folder, whose settings the copy takes over
set -euo pipefail

sources=$1 build=$2 jobs=${3:-2}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tests='^gpu\.collectives\.(n3|nodes_of_2\.n3|without_ipc\.n3)$'
tests_of_rails='^gpu\.collectives\.(nodes_of_2|aware)\.n3$' # what is only used between nodes shows there
target=test_gpu_collectives

# Whole statements or conditions, and what stands for them.
#   hear_ready, hear_done, hear_slots_free, begin, come_behind, hand_over: calls;  is_idle, is_past: always true
mutants() {
    grep -nE '^ +fsdpi_gpu_(hear_ready|hear_done|hear_slots_free|begin|come_behind|finish)\(' "$sources"/lib/*.c "$sources"/collectives/*.c \
        "$sources"/collectives/*/*.c
    grep -nE 'fsdpi_gpu_(is_idle|is_past|hand_over)\(|is_stream_idle\(request, progress\)\)' "$sources"/lib/queue.c \
        "$sources"/collectives/*.c "$sources"/collectives/*/*.c
}

mutate() { # FILE LINE
    sed -i -E "$2"'{
        s/^( +)fsdpi_gpu_(hear_ready|hear_done|hear_slots_free|begin|come_behind|finish)\([^;]*;/\1(void)request;/
        s/fsdpi_gpu_is_idle\([^)]*(\([^)]*\))?\)|is_stream_idle\(request, progress\)/true/
        s/fsdpi_gpu_is_past\(request, [a-z_]+\([^()]*\)\)/true/
        s/fsdpi_gpu_hand_over\(request\)/FSDP_OK/
    }' "$1"
}

mkdir "$folder/copy"
tar -C "$sources" --exclude=./build --exclude=./.git -cf - . | tar -C "$folder/copy" -xf -
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[^=]*=//p' "$build/CMakeCache.txt")
cmake -S "$folder/copy" -B "$folder/build" -DCMAKE_C_COMPILER="$compiler" -DFSDP_HIP=OFF -DFSDP_WERROR=OFF \
    -DFSDP_BUILD_EXAMPLES=OFF -DCMAKE_C_FLAGS=-Wno-unused >/dev/null
cmake --build "$folder/build" -j"$jobs" --target "$target" >/dev/null

run_tests() { # REGEX
    ctest --test-dir "$folder/build" -R "$1" --timeout 60 --stop-on-failure >"$folder/log" 2>&1
}

run_tests "$tests|$tests_of_rails" || { cat "$folder/log"; echo "check_waits.sh: the tests fail without a mutation"; exit 1; }
survivors=0 n=0
while IFS=: read -r file line text <&3; do
    copy=$folder/copy/${file#"$sources"/}
    cp "$copy" "$folder/saved"
    mutate "$copy" "$line"
    if cmp -s "$copy" "$folder/saved"; then
        continue # a declaration or a definition
    fi
    n=$((n + 1))
    cmake --build "$folder/build" -j"$jobs" --target "$target" >"$folder/log" 2>&1 ||
        { cat "$folder/log"; echo "check_waits.sh: ${file#"$sources"/}:$line does not compile"; exit 1; }
    if run_tests "$([[ $file == */collectives/rails.c ]] && echo "$tests_of_rails" || echo "$tests")"; then
        survivors=$((survivors + 1))
        echo "not noticed: ${file#"$sources"/}:$line:$text"
    else
        echo "noticed: ${file#"$sources"/}:$line:$text"
    fi
    cp "$folder/saved" "$copy"
done 3< <(mutants)
echo "$n waits deleted in turn, $survivors of them not noticed"
[[ $n -gt 0 && $survivors -eq 0 ]]
