#!/bin/bash
# Nodes with GPUs, a rank for each. At the time limit the program saves and the job is queued again, until the program
# is done. For lost nodes add what several-nodes.sh has.
#SBATCH --job-name=train
#SBATCH --nodes=4 --exclusive
#SBATCH --gpus-per-node=2
#SBATCH --time=24:00:00
#SBATCH --signal=B:USR1@600
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=train-%j.log

most_restarts=20 # of the job
ranks_per_node=2 # as many as GPUs
cpus_per_rank=8
mpi=pmix         # for Open MPI; pmi2 for MPICH
export SLURM_PMIX_FENCE=ring # the default may crash MPI_Init() on busy nodes
program=(./03_gpt --checkpoint "$SLURM_SUBMIT_DIR/run" --every 100)

gpus=${SLURM_GPUS_ON_NODE:?this job has no GPUs}
echo "attempt ${SLURM_RESTART_COUNT:-0} of job $SLURM_JOB_ID on $SLURM_JOB_NODELIST, $gpus GPUs on each node"

# All ranks see all GPUs of their node, since they share memory of GPUs; the library gives each its own.
gpu=(--gpus-per-node="$gpus" --gpu-bind=none)

# The signal comes to this script, --signal seconds before the limit; srun hands it to all ranks.
trap 'kill -USR1 "$job"' USR1
srun --mpi="$mpi" "${gpu[@]}" --ntasks-per-node="$ranks_per_node" --cpus-per-task="$cpus_per_rank" \
    "${program[@]}" &
job=$!
while kill -0 "$job" 2>/dev/null; do # a signal ends `wait` early
    wait "$job"
done
wait "$job"
status=$?

# 75: the program has saved, and wants to go on.
if ((status == 75 && ${SLURM_RESTART_COUNT:-0} < most_restarts)); then
    scontrol requeue "$SLURM_JOB_ID"
    sleep 600 # for Slurm to end this attempt
fi
exit "$status"
