#!/usr/bin/env bash
# Deletes each wait for a stream or an event that the library makes, one at a time, in a copy of the sources, and expects
# that the double of the HIP runtime, or a result, shows it. A mutant that no test notices is named, and the check fails.
#
#   check_waits.sh SOURCES BUILD [JOBS [FILES]]
#     BUILD: a configured build folder, whose settings the copy takes over;  FILES: only what is in files like this
set -euo pipefail

sources=$1 build=$2 jobs=${3:-2} files=${4:-.}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The programs in which a mutant in a file shows.
programs_for() { # FILE
    case $1 in
    */shard/*) echo test_gpu_model ;;
    */lib/device/gpu_device_hip.c) printf '%s\n' test_gpu_device test_gpu_device_peers ;;
    *) echo test_gpu_collectives ;;
    esac
}

# And where: the fastest first.
tests_for() { # FILE
    case $1 in
    */shard/*) printf '^gpu\\.model\\.%s$\n' n1 n2 nodes_of_2.n3 ;;
    */lib/device/gpu_device_hip.c) echo '^gpu\.device(_peers\.n2)?$' ;;
    */collectives/rails.c) echo '^gpu\.collectives\.(nodes_of_2|aware)\.n3$' ;; # what is only used between nodes
    *) echo '^gpu\.collectives\.(n3|nodes_of_2\.n3|without_ipc\.n3)$' ;;
    esac
}

# Lines with whole statements or conditions. What stands for them:
#   calls that wait: nothing;  wait_for and complete, of requests: success;  is_idle, is_past: always true
mutants() {
    local lib=("$sources"/lib/*.c "$sources"/lib/device/*.c "$sources"/collectives/*.c "$sources"/collectives/*/*.c)

    grep -nE '^ +fsdpi_gpu_(hear_ready|hear_done|hear_slots_free|begin|come_behind|finish)\(' "${lib[@]}"
    grep -nE '^ +.*fsdpi_gpu_(is_idle|is_past|hand_over)\(|^ +.*is_stream_idle\(request, progress\)\)' "${lib[@]}"
    grep -nE '= finish_all\(gpu\);|^ +\(void\)finish_all\(gpu\);' "${lib[@]}"
    grep -nE '^ +(FSDP_TRY\(device->ops->stream_finish|TRY_GPU\(gpu, hipStreamSynchronize)\(' "${lib[@]}"
    grep -nE '^ +(fsdpi_compute_finish|fsdpi_gpu_context_finish|order)\(' "$sources"/shard/*.c
    grep -nE '^ +fsdpi_compute_keep\(model, gpu->ops->(stream_finish|wait_for)\(' "$sources"/shard/*.c
    grep -nE '(= |FSDP_TRY\()(wait_for|complete)\((view|bucket|unit)' "$sources"/shard/{gather,reduction}.c
    grep -HnE '^ +\(void\)complete\(' "$sources"/shard/gather.c
}

mutate() { # FILE LINE
    sed -i -E "$2"'{
        s/^( +)fsdpi_gpu_(hear_ready|hear_done|hear_slots_free|begin|come_behind|finish)\([^;]*;/\1(void)request;/
        s/fsdpi_gpu_is_idle\([^)]*(\([^)]*\))?\)|is_stream_idle\(request, progress\)/true/
        s/fsdpi_gpu_is_past\(request, [a-z_]+\([^()]*\)\)/true/
        s/fsdpi_gpu_hand_over\(request\)/FSDP_OK/
        s/^( +)(fsdpi_compute_finish|fsdpi_gpu_context_finish|order)\([^;]*;/\1;/
        s/^( +)fsdpi_compute_keep\(model, gpu->ops->(stream_finish|wait_for)\([^;]*;/\1;/
        s/^( +)(FSDP_TRY\(device->ops->stream_finish|TRY_GPU\(gpu, hipStreamSynchronize)\([^;]*;/\1;/
        s/= finish_all\(gpu\);/= FSDP_OK;/
        s/\(void\)finish_all\(gpu\);/;/
        s/= (wait_for|complete)\([^;,]*\)/= FSDP_OK/
        s/^( +)(FSDP_TRY\(|\(void\))(wait_for|complete)\([^;]*;/\1;/
    }' "$1"
}

mkdir "$folder/copy"
tar -C "$sources" --exclude=./build --exclude=./.git -cf - . | tar -C "$folder/copy" -xf -
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[^=]*=//p' "$build/CMakeCache.txt")
cmake -S "$folder/copy" -B "$folder/build" -DCMAKE_C_COMPILER="$compiler" -DFSDP_HIP=OFF -DFSDP_WERROR=OFF \
    -DFSDP_BUILD_EXAMPLES=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS='-O1 -Wno-unused' -DFSDP_TEST_DEVICE_RANKS='1;2;3' >/dev/null

build_programs() { # FILE: that is changed
    local programs

    mapfile -t programs < <(programs_for "$1")
    cmake --build "$folder/build" -j"$jobs" --target "${programs[@]}" >"$folder/log" 2>&1
}

# All of them succeed.
run_tests() { # REGEX...
    local regex

    for regex in "$@"; do
        ctest --test-dir "$folder/build" -R "$regex" --no-tests=error --timeout 60 --stop-on-failure >"$folder/log" 2>&1 || return
    done
}

for file in lib/queue.c lib/device/gpu_device_hip.c collectives/rails.c shard/compute.c; do # one of each kind
    mapfile -t tests < <(tests_for "/$file")
    { build_programs "/$file" && run_tests "${tests[@]}"; } ||
        { cat "$folder/log"; echo "check_waits.sh: the tests of $file fail without a mutation"; exit 1; }
done
survivors=0 n=0
while IFS=: read -r file line text <&3; do
    copy=$folder/copy/${file#"$sources"/}
    cp "$copy" "$folder/saved"
    mutate "$copy" "$line"
    if cmp -s "$copy" "$folder/saved"; then
        continue # a declaration or a definition
    fi
    n=$((n + 1))
    build_programs "$file" || { cat "$folder/log"; echo "check_waits.sh: ${file#"$sources"/}:$line does not compile"; exit 1; }
    mapfile -t tests < <(tests_for "$file")
    if run_tests "${tests[@]}"; then
        survivors=$((survivors + 1))
        echo "not noticed: ${file#"$sources"/}:$line:$text"
    else
        echo "noticed: ${file#"$sources"/}:$line:$text"
    fi
    cp "$folder/saved" "$copy"
done 3< <(mutants | grep -E "^[^:]*($files)[^:]*:")
echo "$n waits deleted in turn, $survivors of them not noticed"
[[ $n -gt 0 && $survivors -eq 0 ]]
