#!/usr/bin/env bash
# Deletes each wait for a stream or an event that the library makes, one at a time, in a copy of the sources, and expects
# that the double of the HIP runtime, or a result, shows it. A mutant that no test notices is named, and the check fails.
#
#   check_waits.sh SOURCES BUILD [JOBS [FILES]]
#     BUILD: a configured build folder, whose settings the copy takes over;  FILES: only what is in files like this
#   check_waits.sh --count SOURCES
#     only finds the waits, and fails if it finds fewer than there are, or if a file that it names is missing
set -euo pipefail

readonly least=55 # waits in the sources: when files move, the patterns below have to follow

count_only=no
if [[ $1 == --count ]]; then
    count_only=yes
    shift
fi
sources=$1 build=${2-} jobs=${3:-2} files=${4:-.}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The programs in which a mutant in a file shows.
programs_for() { # FILE
    case $1 in
    */shard/pipeline/*) echo test_gpu_pipeline ;;
    */shard/*) echo test_gpu_model ;;
    */lib/context/gpu_scratch.c) echo test_gpu_tensor_parallel ;;
    */lib/device/gpu_device_hip.c) printf '%s\n' test_gpu_device test_gpu_device_peers ;;
    *) echo test_gpu_collectives ;;
    esac
}

# And where: the fastest first.
tests_for() { # FILE
    case $1 in
    */shard/pipeline/*) printf '^gpu\\.pipeline\\.%s$\n' n3 nodes_of_1.n3 nodes_of_2.n3 aware.n3 ;;
    */shard/*) printf '^gpu\\.model\\.%s$\n' n1 n2 nodes_of_2.n3 ;;
    */lib/context/gpu_scratch.c) echo '^gpu\.tensor_parallel\.n3$' ;;
    */lib/device/gpu_device_hip.c) echo '^gpu\.device(_peers\.n2)?$' ;;
    */collectives/rails/*) echo '^gpu\.collectives\.(nodes_of_2|aware)\.n3$' ;; # what is only used between nodes
    *) echo '^gpu\.collectives\.(n3|nodes_of_2\.n3|without_ipc\.n3)$' ;;
    esac
}

# Lines with whole statements or conditions. What stands for them:
#   calls that wait: nothing;  wait_for, complete and complete_all, of requests: success;  is_idle, is_past, and a pipeline's
#   stream_wait: always true
mutants() {
    local lib shard
    mapfile -t lib < <(find "$sources"/lib "$sources"/collectives -name '*.c' | sort)
    mapfile -t shard < <(find "$sources"/shard/{state,storage,schedule,optimizer,training,model} -name '*.c' | sort)

    grep -nE '^ +fsdpi_gpu_(hear_ready|hear_done|hear_slots_free|come_behind)\(' "${lib[@]}"
    grep -nE '^ +(.*= )?request->ops->(begin|abandon|hand_over)\(request\);' "${lib[@]}"
    grep -nE '^ +.*fsdpi_gpu_(is_idle|is_past)\(|^ +.*(ops->is_past\(|is_done\(request, progress\)\))' "${lib[@]}"
    grep -nE '= finish_all\(gpu\);|^ +\(void\)finish_all\(gpu\);' "${lib[@]}"
    grep -nE '^ +(FSDP_TRY\(device->ops->stream_finish|TRY_GPU\(gpu, hipStreamSynchronize)\(' "${lib[@]}"
    grep -nE '^ +(fsdpi_compute_finish|fsdpi_gpu_context_finish|order)\(' "${shard[@]}"
    grep -nE '^ +fsdpi_compute_keep\(model, gpu->ops->(stream_finish|wait_for)\(' "${shard[@]}"
    grep -nE '(= |return |FSDP_TRY\()(wait_for|complete|complete_all)\((view|bucket|unit)' "$sources"/shard/schedule/{gather,reduction}.c
    grep -HnE '^ +return device->ops->wait_for\(' "$sources"/lib/context/gpu_scratch.c
    grep -HnE '^ +\(void\)complete\(' "$sources"/shard/schedule/gather.c
    grep -nE 'fsdpi_(stream_wait|mark_is_past|stream_hand_over)\(pipeline, ' "$sources"/shard/pipeline/run/{near,far}_device.c
}

mutate() { # FILE LINE
    sed -i -E "$2"'{
        s/^( +)fsdpi_gpu_(hear_ready|hear_done|hear_slots_free|come_behind)\([^;]*;/\1(void)request;/
        s/^( +)request->ops->(begin|abandon)\(request\);/\1(void)request;/
        s/fsdpi_gpu_is_idle\([^)]*(\([^)]*\))?\)|is_done\(request, progress\)/true/
        s/(fsdpi_gpu_|ops->)is_past\(request, [a-z_]+(\([^()]*\))?\)/true/
        s/request->ops->hand_over\(request\)/FSDP_OK/
        s/^( +)(fsdpi_compute_finish|fsdpi_gpu_context_finish|order)\([^;]*;/\1;/
        s/^( +)fsdpi_compute_keep\(model, gpu->ops->(stream_finish|wait_for)\([^;]*;/\1;/
        s/^( +)(FSDP_TRY\(device->ops->stream_finish|TRY_GPU\(gpu, hipStreamSynchronize)\([^;]*;/\1;/
        s/return device->ops->wait_for\([^;]*;/return FSDP_OK;/
        s/fsdpi_(stream_wait|mark_is_past)\(pipeline, [^()]*(\([^()]*\))?[^()]*\)/true/
        s/^( +)fsdpi_stream_hand_over\([^;]*;/\1;/
        s/= finish_all\(gpu\);/= FSDP_OK;/
        s/\(void\)finish_all\(gpu\);/;/
        s/(= |return )(wait_for|complete|complete_all)\([^;,]*\)/\1FSDP_OK/
        s/^( +)(FSDP_TRY\(|\(void\))(wait_for|complete)\([^;]*;/\1;/
    }' "$1"
}

# Those of the lines above that mutate() changes: the others are declarations and definitions.
find_waits() {
    local file line text

    mutants >"$folder/lines" 2>"$folder/missing" || true
    if [[ -s $folder/missing ]]; then
        cat "$folder/missing"
        echo "check_waits.sh: correct the names of files and folders in mutants()"
        return 1
    fi
    while IFS=: read -r file line text; do
        cp "$file" "$folder/one.c"
        mutate "$folder/one.c" "$line"
        cmp -s "$file" "$folder/one.c" || echo "$file:$line:$text"
    done <"$folder/lines" >"$folder/waits"
    if (($(wc -l <"$folder/waits") < least)); then
        cut -d : -f 1 "$folder/waits" | sort | uniq -c
        echo "check_waits.sh: $(wc -l <"$folder/waits") waits found of $least; correct mutants(), or 'least' if waits have gone"
        return 1
    fi
}

# One file of each kind that programs_for() and tests_for() know.
kinds=(lib/progress/queue.c lib/device/gpu_device_hip.c lib/context/gpu_scratch.c collectives/rails/device.c shard/storage/compute_device.c
       shard/pipeline/run/near_device.c)
for file in "${kinds[@]}"; do
    [[ -e $sources/$file ]] || { echo "check_waits.sh: there is no $file; correct its name here"; exit 1; }
done
find_waits
if [[ $count_only == yes ]]; then
    echo "$(wc -l <"$folder/waits") waits"
    exit
fi

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
        ctest --test-dir "$folder/build" -C soak -R "$regex" --no-tests=error --timeout "$((120 * ${TEST_TIME_FACTOR:-1}))" --stop-on-failure >"$folder/log" 2>&1 || return
    done
}

for file in "${kinds[@]}"; do
    mapfile -t tests < <(tests_for "/$file")
    { build_programs "/$file" && run_tests "${tests[@]}"; } ||
        { cat "$folder/log"; echo "check_waits.sh: the tests of $file fail without a mutation"; exit 1; }
done
survivors=0 n=0
while IFS=: read -r file line text <&3; do
    copy=$folder/copy/${file#"$sources"/}
    cp "$copy" "$folder/saved"
    mutate "$copy" "$line"
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
done 3< <(grep -E "^[^:]*($files)[^:]*:" "$folder/waits")
echo "$n waits deleted in turn, $survivors of them not noticed"
[[ $n -gt 0 && $survivors -eq 0 ]]
