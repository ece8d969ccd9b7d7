#!/usr/bin/env bash
# Programs under Slurm: started by srun, and by MPI's own launcher in an allocation and in a batch script. Nodes are seen as
# nodes, settings reach the ranks, the same layout has the same bits, and the line of `fsdp-topo --launch` works.
#
#   check_launch.sh PMI MPIEXEC PROBE HELLO GPT DATA TOPO
set -euo pipefail

# shellcheck source=tests/slurm/common.sh
. "$(dirname "$0")/common.sh"

pmi=$1 mpiexec=$2 probe=$3 hello=$4 program=$5 data=$6 topo=$7
cd "$folder"

# placed WHAT COMMAND...: six ranks, two on each of three nodes, all with our variables
placed() {
    local what=$1 rank
    shift
    FSDP_TIMEOUT_S=77 OMPI_COLOUR=red head "$@" >out 2>err || fail "$what: failed"
    for rank in 0 1 2 3 4 5; do
        echo "rank $rank on HOST$((rank / 2)), node of rank $((rank / 2 * 2)), FSDP_TIMEOUT_S=77 OMPI_COLOUR=red"
    done >wanted
    # Which three is Slurm's choice.
    awk '/^rank / { if (!($4 in number)) number[$4] = n++; host = $4; sub(/,$/, "", host)
                    sub(host, "HOST" number[$4]); print }' out | diff wanted - || fail "$what: not as asked for"
    echo "$what: six ranks on three nodes"
}

# trained FILE COMMAND...: keeps what 03_gpt prints to the last bit
trained() {
    local file=$1
    shift
    head "$@" >out 2>err || fail "$*: failed"
    grep '^exact ' out >"$file" || fail "$*: no exact lines"
    grep -q '^ranks *4, ' out || fail "$*: not four ranks"
}

[[ $(head srun --mpi=list 2>&1) == *"$pmi"* ]] || skip "this Slurm has no $pmi"

placed "srun --mpi=$pmi" srun "--mpi=$pmi" --nodes=3 --ntasks-per-node=2 "$probe" nodes
placed "salloc, $(basename "$mpiexec")" salloc --quiet --nodes=3 --ntasks-per-node=2 "$mpiexec" "$probe" nodes

head srun "--mpi=$pmi" --nodes=4 --ntasks=4 "$hello" >out 2>err || fail "hello failed"
[[ $(grep -c '^allreduce (avg) rank [0-3]:   25.0   25.0   25.0   25.0$' out) -eq 4 ||
    $(grep -c '^allreduce (avg) rank [0-3]:   25.0$' out) -eq 4 ]] || fail "hello has computed something else"
echo "the first example: on four nodes"

# The same layout under both launchers; the second in a batch script.
options=(--data "$data" --layers 1 --heads 2 --width 32 --context 32 --batch 8 --steps 10 --val-batches 1 --sample 0
    --exact --progress off)
trained by_srun srun "--mpi=$pmi" --nodes=2 --ntasks-per-node=2 "$program" "${options[@]}"
cat >job.sh <<SCRIPT
#!/bin/bash
$(printf '%q ' "$mpiexec" "$program" "${options[@]}")
SCRIPT
head sbatch --quiet --wait --nodes=2 --ntasks-per-node=2 --output=batch.out job.sh || fail "the batch script failed: $(cat batch.out)"
grep '^exact ' batch.out | diff by_srun - || fail "srun and $(basename "$mpiexec") in a batch script train differently"
[[ $(wc -l <by_srun) -ge 11 ]] || fail "too few exact lines: $(cat by_srun)"
echo "03_gpt: the same bits by srun and by $(basename "$mpiexec") in a batch script"

# What --launch prints on a node, directly and in an allocation of whole nodes; a rank per core.
cores=$(nproc)
"$cluster" enter 0 "$topo" --ranks "$cores" --launch --wrapper wrapper.sh >launch 2>err </dev/null || fail "no lines for this machine"
line=$(sed -n '/^# Slurm/,/^$/p' launch | grep '^srun ') || fail "no line for Slurm"
[[ $line == *" --nodes=1 --exclusive "*" ./wrapper.sh PROGRAM" ]] || fail "the line for Slurm is another: $line"
grep -q "^# .*--mpi=$pmi" launch || fail "nothing is said of --mpi=$pmi"
cat >bound.sh <<'SCRIPT'
#!/bin/sh
echo "$SLURM_LOCALID $(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)"
SCRIPT
chmod +x bound.sh
sed -n 's/^\([0-9]*\)) threads=\([-0-9,]*\).*/\1 \2/p' wrapper.sh >wanted
[[ $(wc -l <wanted) -eq $cores ]] || fail "the wrapper is not understood"
read -r -a words <<<"${line/PROGRAM/./bound.sh}"
for around in "" "salloc --quiet --nodes=1 --exclusive"; do
    # shellcheck disable=SC2086 # words
    head $around "${words[0]}" "--mpi=$pmi" "${words[@]:1}" >out 2>err || fail "${around:-directly}: this line fails: $line"
    sort -n out | diff wanted - || fail "${around:-directly}: '$line' does not give the masks of the plan (<)"
    [[ ! -s err ]] || fail "${around:-directly}: something is complained of"
done
head srun "--mpi=$pmi" --nodes=2 --ntasks-per-node=1 "$topo" --launch >out 2>err || fail "fsdp-topo on two nodes failed"
grep -q '^srun --nodes=2 --exclusive --ntasks-per-node=1 ' out || fail "the line for two nodes"
echo "the line of fsdp-topo --launch: works directly and in an allocation"
