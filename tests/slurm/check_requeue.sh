#!/usr/bin/env bash
# The scripts of docs/slurm when the signal comes that a time limit has: the program saves, the job is queued again and goes on.
# Losses and weights are those of a run that nothing has disturbed, to the last bit.
#
#   check_requeue.sh pmix|pmi2 FOLDER_OF_SCRIPTS GPT DATA
set -euo pipefail

# shellcheck source=tests/slurm/common.sh
. "$(dirname "$0")/common.sh"

pmi=$1 scripts=$2 program=$3 data=$4
cd "$folder"

common=(--data "$data" --layers 1 --heads 2 --width 32 --context 32 --batch 8 --val-batches 1 --sample 0 --progress off
    --exact --every 1000000 --interval 50)

# steps RANKS: enough that the signal comes in between, however fast they are; one rank needs no network
steps() {
    echo "$(($1 == 1 ? 8000 : 2000))"
}

# whole SCRIPT RANKS: what its job has printed, and the checkpoint in the end, are those of one that was not interrupted
whole() {
    grep '^exact ' "straight.$2" >wanted
    grep '^exact ' "$1.log" >got
    diff wanted got || fail "$1: the losses are others"
    for name in model.safetensors optimizer.safetensors; do
        cmp "straight.$2.run/$(cat "straight.$2.run/latest")/$name" "$1.run/$(cat "$1.run/latest")/$name" || fail "$1: $name differs"
    done
}

# requeued SCRIPT RANKS NAME=VALUE...: its job, which gets the signal once in its first attempt
requeued() {
    local script=$1 ranks=$2 job
    shift 2
    options=("${common[@]}" --steps "$(steps "$ranks")" --checkpoint "$folder/$script.run")
    adapt "$scripts/$script.sh" "mpi=$pmi" "$@" >"$script.sh"
    job=$(head sbatch --parsable "--output=$script.log" "$script.sh")
    until_so "$script: the program starts" grep -qs '^step ' "$script.log"
    head scancel --batch --signal=USR1 "$job"
    until_so "$script: the job ends" ended "$job"
    [[ $(head scontrol show job "$job") == *"JobState=COMPLETED"*"Restarts=1 "* ]] || fail "$script: $(head scontrol show job "$job")"
    [[ $(grep -c '^attempt ' "$script.log") == 2 ]] || fail "$script: not two attempts"
    grep -q '^resumed ' "$script.log" || fail "$script: not resumed"
    whole "$script" "$ranks"
    echo "$script: saved at the signal, queued again, resumed, with the bits of an undisturbed run"
}

ended() {
    [[ $(head scontrol show job "$1") =~ JobState=(COMPLETED|FAILED|TIMEOUT|CANCELLED|NODE_FAIL) ]]
}

# straight NODES: the run that nothing disturbs, with one rank on each
straight() {
    head srun "--mpi=$pmi" "--nodes=$1" --ntasks-per-node=1 "$program" "${common[@]}" --steps "$(steps "$1")" --checkpoint "$folder/straight.$1.run" \
        >"straight.$1" 2>err || fail "the run without signals failed"
}

straight 1
requeued one-node 1 ranks_per_node=1 cpus_per_rank=1
straight 4
requeued several-nodes 4 ranks_per_node=1 cpus_per_rank=1
requeued gpus 4 ranks_per_node=1 cpus_per_rank=1
[[ $(grep -c '^attempt .*, 2 GPUs on each node$' gpus.log) == 2 ]] || fail "not two GPUs on each node"

# Only so often: SLURM_RESTART_COUNT.
sed 's|^most_restarts=20|most_restarts=0|; s|--output=.*|--output=most.log|; s|several-nodes.run|most.run|' several-nodes.sh >most.sh
job=$(head sbatch --parsable --output=most.log most.sh)
until_so "the program starts" grep -qs '^step ' most.log
head scancel --batch --signal=USR1 "$job"
until_so "the job ends" ended "$job"
[[ $(head scontrol show job "$job") == *"JobState=FAILED"*"Restarts=0 "*"ExitCode=75:0"* ]] || fail "a job that may not restart: $(head scontrol show job "$job")"
echo "a job that may not restart ends with status 75"
