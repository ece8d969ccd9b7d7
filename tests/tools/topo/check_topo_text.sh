#!/usr/bin/env bash
# fsdp-topo's text: what is on a node, who goes where, and what is wrong with that. Without MPI.
#
#   check_topo_text.sh PROGRAM FOLDER_OF_NODES
set -euo pipefail

program=$1 nodes=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# shows REGEX...: each must match a line of the last output, which is all there was
shows() {
    local pattern
    for pattern; do
        grep -Eq -- "$pattern" "$folder/out" || {
            echo "no line of '${call[*]}' matches '$pattern'"
            failures=$((failures + 1))
        }
    done
}

# hides REGEX
hides() {
    ! grep -E -- "$1" "$folder/out" || {
        echo "this is in '${call[*]}', and should not be: '$1'"
        failures=$((failures + 1))
    }
}

run() {
    call=("$@")
    if ! "$program" "$@" >"$folder/out" 2>"$folder/err" </dev/null || [[ -s $folder/err ]]; then
        cat "$folder/err"
        echo "'${call[*]}' failed, or said something on standard error"
        failures=$((failures + 1))
    fi
}

run # this machine, whatever it is
shows '^node .+: [0-9]+ packages?, [0-9]+ NUMA nodes?, .*[0-9]+ cores?, [0-9]+ hardware threads?, [0-9]+ GPUs?' \
    '^sources$' '^  hwloc +(present|missing) +[^ ]' '^  rocm-smi +(present|missing) +[^ ]' '^  HIP +(present|missing) +[^ ]' \
    '^  control group +(present|missing)' '^  GPUs +(present|missing)' '^  network +(present|missing)' \
    '^  package 0 .* [0-9]+ cores?  threads [0-9]'
hides '^[0-9]+ ranks?'

run --input "$nodes/eight_gpus.xml"
shows '^node .*: 1 package, 4 NUMA nodes, 8 last-level caches, 16 cores, 32 hardware threads, 8 GPUs, 5 network cards$' \
    '^  hwloc +present' '^  rocm-smi +missing' '^    NUMA node 3 +16 GiB +4 cores +threads 12-15,28-31$' \
    '^      L3 7 +32 MiB +2 cores +threads 14-15,30-31$' \
    '^  GPU 4 0000:d1:00.0 +AMD 7408 +NUMA node 0 +threads 0-1,16-17 +64 GiB' \
    '^ +GPU0 +GPU1 +GPU2 +GPU3 +GPU4 +GPU5 +GPU6 +GPU7 +NIC0 +NIC1 +NIC2 +NIC3 +NIC4$' \
    '^  GPU 0 0000:c1:00.0 +X +XGMI200 +XGMI50 +XGMI50 +XGMI100 +XGMI100 +XGMI100 +XGMI100 +PKG +PKG +PKG +PKG +NODE$' \
    '^  NIC0 hsi0 +PKG +PKG +PKG +PKG +NODE +NODE +PKG +PKG +X +NODE +PKG +PKG +PKG$' \
    '^  XGMI200 +XGMI, 200000 MB/s$' '^  XGMI50 +XGMI, 50000 MB/s$' '^  NODE +within a NUMA node$' '^  PKG +between' \
    '^  hsi0 +0000:d5:00.0 +NUMA node 0 +fabric$' '^  eth0 +0000:94:00.0 +NUMA node 0$'
hides '^[0-9]+ ranks?'

# first FIRST_LINE: the verdict
first() {
    [[ $(head -1 "$folder/out") == "$1" ]] || {
        echo "'${call[*]}' begins with '$(head -1 "$folder/out")', not '$1'"
        failures=$((failures + 1))
    }
}

# in core order, ranks 0 to 7 belong on GPUs 4 5 2 3 6 7 0 1
run --input "$nodes/eight_gpus.xml" --ranks 8
shows '^8 ranks as planned$' '^ +0  GPU 4 0000:d1:00.0 +- +0-1,16-17 +0 +hsi0 +-$' '^ +1  GPU 5 .* 2-3,18-19 ' '^ +2  GPU 2 ' \
    '^ +3  GPU 3 ' '^ +4  GPU 6 ' '^ +5  GPU 7 ' '^ +6  GPU 0 ' '^ +7  GPU 1 0000:c6:00.0 .* 14-15,30-31 ' '^problems: none$' \
    '^reasons of the plan; --why ' '^  ranks 0,2,4,6$' '^    GPU +local, on NUMA node N$' '^    cores +part 1 of 2 .* NUMA node N,' \
    '^    memory +[^ ]' '^    network +[^ ]'
first "8 ranks, each with its own local GPU, 2 cores, no problems"
[[ $(grep -c '^    GPU ' "$folder/out") -le 2 ]] || {
    echo "like reasons are not put together"
    failures=$((failures + 1))
}

run --input "$nodes/eight_gpus.xml" --ranks 8 --why
shows '^reasons of the plan$' '^  rank 7$' '^    GPU +local, on NUMA node 3$'
[[ $(grep -c '^    GPU ' "$folder/out") -eq 8 ]] || {
    echo "--why does not give the reasons of each rank"
    failures=$((failures + 1))
}

run --input "$nodes/eight_gpus.xml" --ranks 8 --reserve 0,16,14-15
shows '^ +0  GPU 4 .* 1,17 ' '^ +7  GPU 1 .* 30-31 ' '^problems: none$'

run --input "$nodes/eight_gpus.xml" --ranks 8 --reserve-first-core
shows '^ +0  GPU 4 .* 1,17 ' '^ +7  GPU 1 .* 15,31 ' '^problems: none$'

run --input "$nodes/eight_gpus.xml" --ranks 2 --masks 12-13/14,30
shows '^ +0  GPU 0 .* 12-13 ' '^ +1  GPU 1 .* 14,30 '

# one mask for all, next to two of the GPUs: the others are far from it, and marked
run --input "$nodes/eight_gpus.xml" --ranks 3 --masks 12-15
shows '^3 ranks, each with its own GPU, 1 remote, .*cores?, problems: .*masked-gpu' 'remote-gpu' '^  remote-gpu: .*: ranks? [0-9]' 'masked-gpu'

run --input "$nodes/laptop.xml" --ranks 9 # more than cores
shows '^9 ranks, each with .* cores?, problems: overlapping-cores, few-cores$' '^9 ranks as planned$' 'few-cores' '^  overlapping-cores: .*: ranks 0-' '^GPUs: none$'

run --input "$nodes/two_sockets.xml" --ranks 4
first "4 ranks, on 3 GPUs, 2 cores, problems: shared-gpu"
shows '^  GPU 1 0000:11:00.0 +SYS +X +NV50 +SYS$' '^ +GPU0 +GPU1 +GPU2 +NIC0$' '^  NV50 +NVLink, 50000 MB/s$' '^  SYS +between packages$' '^  shared-gpu: .*: ranks 0-1$'

run --input "$nodes/unknown_locality.xml" --ranks 2
shows '^2 ranks, each with its own GPU, locality of the GPUs unknown, .* cores?, problems: unknown-locality' '^  GPU 0 0002:01:00.0 .* NUMA node unknown +threads unknown' '^  unknown-locality: .*: ranks 0-1$' '^  GPU 0 0002:01:00.0 +X +[?]$' '^  [?] +not known$'

run --input "$nodes/memories.xml"
shows '^memory that nothing is planned onto$' '^  NUMA node 2 +HBM +16 GiB  beside NUMA node 0$' \
    '^  NUMA node 4 +NVM +512 GiB  next to threads 0-7$' '^  NUMA node 6 +no cores +128 GiB  next to threads 0-7$'
hides '^kinds of cores'

run --input "$nodes/two_kinds.xml"
shows '^kinds of cores, the fastest first$' '^  IntelCore +4 cores  threads 0-7$' '^  IntelAtom +8 cores  threads 8-15$'
hides '^memory that nothing'

FSDP_TOPOLOGY=$nodes/laptop.xml run
shows ': 1 package, 1 NUMA node, 1 last-level cache, 4 cores, '

run --help
shows '^usage: fsdp-topo ' '^  --reserve-first-core  +plan without' '^exit status$' '^environment$' '^files$'
run --version
shows '^fsdp-topo of libfsdp [0-9.]+$'

((failures == 0))
