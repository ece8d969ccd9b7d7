#!/usr/bin/env bash
# fsdp-topo where there are GPUs: rocm-smi and HIP are a double's, and this machine's first two hardware threads are two NUMA
# nodes with a GPU each, which HIP counts the other way round than PCI does.
#
#   check_topo_double.sh PROGRAM FOLDER_OF_NODES PRELOAD MPIEXEC [FLAG]...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../../support/check.sh"

program=$1 nodes=$2 preload=$3
shift 3
if ! taskset -c 0 true 2>/dev/null || ! taskset -c 1 true 2>/dev/null; then
    skip "hardware threads 0 and 1 may not be used here"
fi

# shows REGEX...: each must match a line
shows() {
    local pattern
    for pattern; do
        grep -Eq -- "$pattern" "$folder/out" || fail "no line matches '$pattern'"
    done
}

hides() {
    ! grep -Eq -- "$1" "$folder/out" || fail "a line matches '$1'"
}

sed "s/@HOST@/$(hostname)/" "$nodes/here.xml.in" >"$folder/here.xml"
cat >"$folder/two.node" <<'NODE'
driver
version 5
gpu 0000:22:00.0 0 1f
health 1073741824 68719476736 37 1700 312.5 54
gpu 0000:11:00.0 1 1f
link 0 1 1 15 50000 100000
hip 1 0
NODE
on_double=(env "LD_PRELOAD=$preload" "NODE_DOUBLE=$folder/two.node" "FSDP_TOPOLOGY=$folder/here.xml")

# run [VARIABLE=VALUE...] -- OPTION...: two ranks
mpiexec=("$@")
run() {
    local variables=()
    while [[ $1 != -- ]]; do
        variables+=("$1")
        shift
    done
    shift
    "${mpiexec[@]}" "${on_double[@]}" ${variables[@]+"${variables[@]}"} "$program" "$@" >"$folder/out" 2>"$folder/err" </dev/null || fail "failed"
    tr -d '\r' <"$folder/out" >"$folder/plain" && mv "$folder/plain" "$folder/out"
    [[ ! -s $folder/err ]] || fail "something on standard error"
}

run FSDP_BIND=auto --
shows '^  rocm-smi +present' '^  HIP +present' '^  GPU 0 0000:11:00.0 .* rocm-smi 1 +hive 1f' \
    '^  XGMI100 +XGMI, 1 hop, weight 15, 50000 to 100000 MB/s$' '^  GPU 0 0000:11:00.0 +X +XGMI100' \
    '^ +0  GPU 1 0000:22:00.0 +1  0 +0 ' '^ +1  GPU 0 0000:11:00.0 +0  1 +' '^problems: none$'
hides '^the plan where it differs'

run FSDP_BIND=none --
shows '^ +0  GPU 0 .* shared-gpu, overlapping-cores' '^ +1  GPU 0 .* shared-gpu' '^  shared-gpu: .*: ranks 0-1$' \
    '^the plan where it differs' '^ +0  GPU 1 0000:22:00.0 +1  0 '

# a launcher that puts each rank next to the other's GPU, and leaves it that GPU only
# shellcheck disable=SC2016 # for the script to expand
printf '#!/bin/sh\nr=${OMPI_COMM_WORLD_LOCAL_RANK:-$MPI_LOCALRANKID}\nROCR_VISIBLE_DEVICES=$r exec taskset -c $r "$@"\n' >"$folder/crossed"
chmod +x "$folder/crossed"
mpiexec+=("$folder/crossed")
run FSDP_BIND=none --
shows '^ +0  GPU 0 0000:11:00.0 +0  0 .*remote-gpu' '^ +1  GPU 1 0000:22:00.0 +0  1 .*remote-gpu' '^  remote-gpu: .*: ranks 0-1$'

run -- --watch --count 1
shows '^ +0  GPU 0 0000:11:00.0 +- +- +- +- +- .* 0$' \
    '^ +1  GPU 1 0000:22:00.0 +1.0/64.0 GiB +37% +1700 MHz +312 W +54 C +[0-9]+% +[0-9.]+/[0-9.]+ GiB  1$'

"${on_double[@]}" "$program" --watch --count 1 >"$folder/out" 2>"$folder/err"
shows '^  GPU 1 0000:22:00.0 +1.0/64.0 GiB +37% +1700 MHz +312 W +54 C$'
