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
sed '/^# \(Open MPI\|MPICH\)$/,$d' launch | sh
cat >say.sh <<'SCRIPT'
#!/bin/sh
echo "rank ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} $(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)"
SCRIPT
chmod +x say.sh
line=$(grep -E '^(mpirun|mpiexec) ' launch) || fail "no mpirun line"
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
grep -qE "^srun --nodes=1 --ntasks-per-node=8 --distribution=block --threads-per-core=2 --gpus-per-node=8 --gpu-bind=none --cpu-bind=mask_cpu:$masks ./wrapper.sh PROGRAM$" launch ||
    fail "the srun line is another: $(grep srun launch)"
grep -qE '^(mpirun -n 8 --map-by ppr:8:node --bind-to none|mpiexec -n 8 -ppn 8 -bind-to none) ./wrapper.sh PROGRAM$' launch ||
    fail "the mpirun line is another"
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
printf '#!/bin/sh\necho "$2 $ROCR_VISIBLE_DEVICES ${HIP_VISIBLE_DEVICES-unset} $3"\n' >bin/taskset
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
for local in SLURM_LOCALID MPI_LOCALRANKID PALS_LOCAL_RANKID; do
    [[ $(env -u OMPI_COMM_WORLD_LOCAL_RANK PATH="$folder/bin:$PATH_BEFORE" "$local=2" ./on_fake.sh prog) == "4-5,20-21 4 unset prog" ]] ||
        fail "$local is not understood"
done

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

# NVIDIA's count in the order of PCI addresses.
"$program" --input "$nodes/two_sockets.xml" --launch --wrapper wrapper.sh >launch
# shellcheck disable=SC2016 # likewise
sed -i 's/^exec .*/echo "$threads $CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES"/' wrapper.sh
[[ $(SLURM_LOCALID=2 ./wrapper.sh) == *" PCI_BUS_ID 2" ]] || fail "the GPU of an NVIDIA node"
