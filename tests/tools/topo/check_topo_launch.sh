#!/usr/bin/env bash
# The lines of fsdp-topo --launch: the ranks that they start have the masks of the plan, and the wrapper finds GPUs by their
# PCI addresses.
#
#   check_topo_launch.sh PROGRAM FOLDER_OF_NODES MPIEXEC [FLAG]...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../../support/check.sh"

program=$1 nodes=$2 mpiexec=$3
command -v taskset >/dev/null || skip "no taskset"
cd "$folder"

# This machine, with two ranks: what the line starts has the masks of the plan.
"$program" --ranks 2 --launch >launch
sed '/^# Open MPI$/,$d' launch | sh
cat >say.sh <<'SCRIPT'
#!/bin/sh
echo "rank ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} $(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)"
SCRIPT
chmod +x say.sh
# line_of LAUNCHER: what is to be typed for it
line_of() {
    sed -n "/^# $1/,/^$/p" launch | grep -v '^#' | grep . || fail "no line for $1"
}
case $("$mpiexec" --version 2>&1) in
*"Open MPI"* | *OpenRTE*) line=$(line_of "Open MPI") ;;
*) line=$(line_of MPICH) ;;
esac
read -r -a words <<<"${line/PROGRAM/./say.sh}"
"$mpiexec" "${words[@]:1}" >said || fail "this line fails: $line"
sort said >got
"$program" --ranks 2 | sed -nE 's/^ +([01])  none +- +([-0-9,]+) .*/rank \1 \2/p; s/^ +([01])  GPU [0-9]+ [^ ]+ +- +([-0-9,]+) .*/rank \1 \2/p' >wanted
[[ $(wc -l <wanted) -eq 2 ]] || fail "the plan is not understood"
diff wanted got || fail "'$line' does not give the masks of the plan (<)"

# Eight ranks, each with a GPU of its own, on a node whose KFD counts them in another order than PCI does.
PATH_BEFORE=$PATH
"$program" --input "$nodes/eight_gpus.xml" --launch --wrapper wrapper.sh >launch
[[ -x wrapper.sh ]] || fail "the wrapper is not executable"
masks=0x30003,0xc000c,0x300030,0xc000c0,0x3000300,0xc000c00,0x30003000,0xc000c000
# is LAUNCHER LINE: the line for it, whatever this build's MPI is
is() {
    [[ $(line_of "$1") == "$2" ]] || fail "the line for $1 is another: $(line_of "$1")"
}
is Slurm "srun --nodes=1 --exclusive --ntasks-per-node=8 --cpus-per-task=4 --threads-per-core=2 --gpus-per-node=8 --gpu-bind=none --distribution=block --cpu-bind=mask_cpu:$masks ./wrapper.sh PROGRAM"
is "Open MPI" "mpirun -n 8 --map-by ppr:8:node --bind-to none ./wrapper.sh PROGRAM"
is MPICH "mpiexec -n 8 -ppn 8 -bind-to none ./wrapper.sh PROGRAM"
is Flux "flux run --nodes=1 --exclusive --tasks-per-node=8 -o cpu-affinity=off -o gpu-affinity=off -o mpibind=off ./wrapper.sh PROGRAM"
is PALS "mpiexec -n 8 --ppn 8 --cpu-bind none ./wrapper.sh PROGRAM"
mkdir kfd bin
for node in 0 1 2 3; do # processors come first, and have no GPU's units
    mkdir kfd/$node
    printf 'cpu_cores_count 16\nsimd_count 0\nlocation_id 0\ndomain 0\n' >kfd/$node/properties
done
node=4
for bus in d1 d6 c1 c6 c9 ce de d9; do # numbers 4 to 11, which as names are sorted otherwise
    mkdir kfd/$node
    printf 'cpu_cores_count 0\nsimd_count 440\nlocation_id %d\ndomain 0\n' $((0x$bus << 8)) >kfd/$node/properties
    node=$((node + 1))
done
# shellcheck disable=SC2016 # for the script to expand
printf '#!/bin/sh\nif [ "$3" = sed ]; then echo "${GIVEN-$2}"; else echo "$2 $ROCR_VISIBLE_DEVICES ${HIP_VISIBLE_DEVICES-unset} $3"; fi\n' >bin/taskset
chmod +x bin/taskset
sed "s|/sys/class/kfd/kfd/topology/nodes|$folder/kfd|" wrapper.sh >on_fake.sh
chmod +x on_fake.sh
for rank in 0 1 2 3 4 5 6 7; do
    PATH=$folder/bin:$PATH_BEFORE HIP_VISIBLE_DEVICES=3 OMPI_COMM_WORLD_LOCAL_RANK=$rank SLURM_LOCALID=0 ./on_fake.sh prog
done >got
cat >wanted <<'TEXT'
0-1,16-17 0 unset prog
2-3,18-19 1 unset prog
4-5,20-21 4 unset prog
6-7,22-23 5 unset prog
8-9,24-25 7 unset prog
10-11,26-27 6 unset prog
12-13,28-29 2 unset prog
14-15,30-31 3 unset prog
TEXT
diff wanted got || fail "the wrapper does not give the GPUs of the plan (<)"
for local in SLURM_LOCALID MPI_LOCALRANKID MV2_COMM_WORLD_LOCAL_RANK PALS_LOCAL_RANKID FLUX_TASK_LOCAL_ID; do
    [[ $(env -u OMPI_COMM_WORLD_LOCAL_RANK PATH="$folder/bin:$PATH_BEFORE" "$local=2" ./on_fake.sh prog) == "4-5,20-21 4 unset prog" ]] ||
        fail "$local is not understood"
done
PATH=$folder/bin:$PATH_BEFORE GIVEN=4 SLURM_LOCALID=2 ./on_fake.sh prog 2>err >/dev/null
grep -q "of the plan's hardware threads 4-5,20-21, local rank 2 is given 4; have the launcher give it whole nodes" err ||
    fail "a launcher that gives less than the plan is not noticed"

# The second part of a GPU that is divided: the second one of KFD's with its address, in whose upper bits is the part.
mkdir kfd/12
printf 'simd_count 440\nlocation_id %d\ndomain 0\n' $((1 << 28 | 0xd1 << 8)) >kfd/12/properties
sed 's/ part=0 ;;/ part=1 ;;/' on_fake.sh >part.sh
chmod +x part.sh
[[ $(PATH=$folder/bin:$PATH_BEFORE SLURM_LOCALID=0 ./part.sh prog) == "0-1,16-17 8 unset prog" ]] || fail "the part of a GPU"

# What cannot be: a rank too many, no launcher, a GPU that is not there.
# refuses PATTERN COMMAND...
refuses() {
    local pattern=$1 status=0
    shift
    "$@" 2>err || status=$?
    [[ $status -eq 1 ]] || fail "'$*' ended with $status"
    grep -q "$pattern" err || fail "'$*' does not say '$pattern'"
}
refuses "local rank '8' is not in the plan; start it with a launcher, at most 8 ranks per node" env SLURM_LOCALID=8 ./on_fake.sh true
refuses "local rank ''" ./on_fake.sh true
rm -r kfd/4/properties kfd/12
refuses "GPU 0000:d1:00.0 is not in .*; make the plan on this node" env SLURM_LOCALID=0 ./on_fake.sh true

# Of NVIDIA's, the UUID that this node has at the plan's address; the plan's own where this node does not say.
"$program" --input "$nodes/two_sockets.xml" --ranks 3 --launch --wrapper wrapper.sh >launch
mkdir -p "nvidia/0000:11:00.0" "nvidia/0000:14:00.0"
printf 'Model: \t\t V100\nGPU UUID: \t GPU-here-11\n' >"nvidia/0000:11:00.0/information"
printf 'GPU UUID: \t GPU-????????-????\n' >"nvidia/0000:14:00.0/information"
# shellcheck disable=SC2016 # for the script to expand
sed -i 's/^exec .*/echo "$CUDA_VISIBLE_DEVICES"/; s|/proc/driver/nvidia/gpus|nvidia|' wrapper.sh
# shellcheck disable=SC2016 # likewise
printf '#!/bin/sh\n[ "$2" = "$KNOWN" ] && echo GPU-smi-14 || { echo "No devices were found"; exit 6; }\n' >bin/nvidia-smi
chmod +x bin/nvidia-smi
# uuid_of ADDRESS: what the rank of this GPU is given
uuid_of() {
    local rank
    rank=$(sed -n "s/^\([0-9]\)) .* nvidia=$1 .*/\1/p" wrapper.sh)
    PATH=$folder/bin:$PATH_BEFORE GIVEN='' SLURM_LOCALID=$rank ./wrapper.sh 2>err
}
export KNOWN=0000:14:00.0
[[ $(uuid_of 0000:06:00.0) == GPU-00000006-0000-4000-8000-000000000000 ]] || fail "the plan's UUID is not taken"
[[ $(uuid_of 0000:11:00.0) == GPU-here-11 ]] || fail "the UUID of this node is not taken"
[[ $(uuid_of 0000:14:00.0) == GPU-smi-14 ]] || fail "nvidia-smi is not asked"
KNOWN='' refuses "knows the GPU 0000:14:00.0; make the plan on this node" uuid_of 0000:14:00.0

# Shares of Slurm's that leave cores over, and more ranks than hardware threads.
"$program" --input "$nodes/eight_gpus.xml" --ranks 3 --launch >launch
line_of Slurm | grep -q -- "--cpus-per-task=10 --threads-per-core=2 .*--distribution=block --cpu-bind=none ./fsdp-launch.sh" ||
    fail "3 ranks on 16 cores: $(line_of Slurm)"
grep -q '^# .*equal shares, 30 of the 32 hardware threads: some ranks get less than the plan' launch || fail "unequal shares are not mentioned"
"$program" --input "$nodes/laptop.xml" --ranks 9 --launch >launch
line_of Slurm | grep -q -- "--ntasks-per-node=9 --cpus-per-task=1 --threads-per-core=1 --overcommit " || fail "9 ranks: $(line_of Slurm)"

"$program" --input "$nodes/two_sockets.xml" --ranks 4 --launch >launch
[[ $(grep -c '^# rank' launch) -eq 1 ]] && grep -q '^# ranks 0-1 of a node: shared-gpu: its GPU serves another rank too$' launch ||
    fail "what is wrong with the plan: $(grep '^# rank' launch)"

# What a record or the command line says stays text, and one line.
sed 's/"sockets"/"x\&#10;touch pwned"/; s/GPU-00000006[-0-9]*/$(touch pwned)/' "$nodes/two_sockets.xml" >evil.xml
"$program" --input evil.xml --launch >launch
grep -q '^# 3 ranks per node of x?touch pwned, by fsdp-topo$' launch || fail "the name of the node: $(head -1 launch)"
sed '/^# Open MPI$/,$d' launch | sh
SLURM_LOCALID=0 ./fsdp-launch.sh true >/dev/null 2>&1 || true
[[ ! -e pwned ]] || fail "a record's text is carried out"
"$program" --input "$nodes/laptop.xml" --launch --wrapper "my 'own" >launch
is MPICH "mpiexec -n 1 -ppn 1 -bind-to none './my '\\''own' PROGRAM"

# GPUs in six parts each: every rank has a part of its own.
"$program" --input "$nodes/partitioned.xml" --ranks 24 --launch --wrapper wrapper.sh >launch
for part in 0 1 2 3 4 5; do
    [[ $(grep -c " part=$part ;;" wrapper.sh) -eq 4 ]] || fail "part $part of four GPUs is not that of four ranks"
done
