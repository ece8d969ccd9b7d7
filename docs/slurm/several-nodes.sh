#!/bin/bash
# Several nodes. When nodes are lost the program starts again on those that are left, from its last checkpoint. At the
# time limit it saves and the job is queued again, until the program is done.
#SBATCH --job-name=train
#SBATCH --nodes=2-4 --exclusive
#SBATCH --time=24:00:00
#SBATCH --signal=B:USR1@600
#SBATCH --requeue
#SBATCH --no-kill
#SBATCH --open-mode=append
#SBATCH --output=train-%j.log

most_restarts=20 # of the job
most_failures=5  # of the program in one attempt of the job
fewest_nodes=2   # with fewer the job is queued again, for others
ranks_per_node=8
cpus_per_rank=8
look_every_s=30
mpi=pmix         # for Open MPI; pmi2 for MPICH
export SLURM_PMIX_FENCE=ring # the default may crash MPI_Init() on busy nodes
program=(./03_gpt --checkpoint "$SLURM_SUBMIT_DIR/run" --every 100)

# nodes_left: those that Slurm still counts to the job and that can start something, one per line
nodes_left() {
    local nodes
    nodes=$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%N)
    # shellcheck disable=SC2016 # expanded on the nodes
    timeout 60 srun --overlap --mpi=none --input=none --nodelist="$nodes" \
        --nodes="$(scontrol show hostnames "$nodes" | wc -l)" --ntasks-per-node=1 --cpus-per-task=1 \
        sh -c 'echo "$SLURMD_NODENAME"' | sort -u
}

# guard NODE: with --no-kill a job goes on without its first node, and so without this script. A step on another node
# queues it again then.
guard() {
    [[ -z $guard ]] || kill "$guard" 2>/dev/null
    # shellcheck disable=SC2016 # expanded on the node
    srun --overlap --mpi=none --input=none --nodelist="$1" --nodes=1 --ntasks=1 --cpus-per-task=1 sh -c '
        while sleep "$1"; do
            nodes=$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%N)
            [ -z "$nodes" ] || scontrol show hostnames "$nodes" | grep -qx "$2" || scontrol requeue "$SLURM_JOB_ID"
        done' sh "$look_every_s" "$SLURMD_NODENAME" >/dev/null 2>&1 &
    guard=$!
}

# launch NODE...: runs the program on these, and sets status
launch() {
    local nodes
    nodes=$(IFS=,; echo "$*")
    echo "attempt ${SLURM_RESTART_COUNT:-0}.$failures of job $SLURM_JOB_ID on $# nodes: $nodes"
    # --overlap: of a step that a lost node has ended, Slurm may take the cores for busy still.
    srun --overlap --mpi="$mpi" --nodelist="$nodes" --nodes=$# --ntasks-per-node="$ranks_per_node" \
        --cpus-per-task="$cpus_per_rank" --kill-on-bad-exit=1 "${program[@]}" 2> >(tee "$errors" >&2) &
    job=$!
    [[ $stop == no ]] || kill -USR1 "$job" # the signal came just before
    while kill -0 "$job" 2>/dev/null; do   # a signal ends `wait` early
        wait "$job"
    done
    wait "$job"
    status=$?
    # srun ends with 0 too where a node has not started its ranks.
    ((status != 0)) || ! grep -q '^srun: .*abort' "$errors" || status=1
    echo "ended with status $status"
}

# The signal comes to this script, --signal seconds before the limit; srun hands it to all ranks.
job='' guard=''
errors=$(mktemp)
stop=no
trap 'stop=yes; [[ -z $job ]] || kill -USR1 "$job"' USR1

for ((failures = 0; failures < most_failures; failures++)); do
    mapfile -t nodes < <(nodes_left)
    status=75
    ((${#nodes[@]} >= fewest_nodes)) || break
    [[ $stop == no ]] || break
    guard "${nodes[-1]}"
    launch "${nodes[@]}"
    # 0: done. 75: the program has saved, and wants to go on.
    ((status != 0 && status != 75)) || break
done
rm "$errors"

if ((status == 75 && ${SLURM_RESTART_COUNT:-0} < most_restarts)); then
    scontrol requeue "$SLURM_JOB_ID"
    sleep 600 # for Slurm to end this attempt
fi
exit "$status"
