#!/usr/bin/env bash
# A job that needs three time limits of two minutes finishes by queueing itself again, saving a minute before each; its log is
# whole, and weights and losses are those of a run that nothing has disturbed, to the last bit.
#
#   check_time_limit.sh pmix|pmi2 SCRIPT GPT DATA
set -euo pipefail

# shellcheck source=tests/slurm/common.sh
. "$(dirname "$0")/common.sh"

pmi=$1 script=$2 program=$3 data=$4
cd "$folder"

# So many steps as take nearly three minutes, when an attempt has one minute. How long one takes is up to the links, which are
# slow for that reason, whatever else this machine does.
options=(--data "$data" --layers 1 --heads 2 --width 32 --context 32 --batch 8 --val-batches 1 --sample 0 --progress off
    --exact --interval 1000000 --every 1000000)
train=(srun "--mpi=$pmi" --nodes=2 --ntasks-per-node=1 "$program" "${options[@]}")
SECONDS=0
head "${train[@]}" --steps 100 >out 2>err || fail "the trial failed"
steps=$((100 * 170 / (SECONDS > 1 ? SECONDS - 1 : 1)))
echo "$steps steps"

# The undisturbed run, on the other two nodes meanwhile.
head "${train[@]}" --steps $steps --checkpoint "$folder/straight" >straight.out 2>err &
straight=$!
options+=(--steps "$steps" --checkpoint "$folder/run")
minutes=2 notice=60 adapt "$script" ranks_per_node=1 cpus_per_rank=1 fewest_nodes=2 "mpi=$pmi" |
    sed 's/--nodes=2-4/--nodes=2/' >job.sh
job=$(head sbatch --parsable --output=job.log job.sh)
until [[ $(head scontrol show job "$job") =~ JobState=(COMPLETED|FAILED|TIMEOUT|CANCELLED|NODE_FAIL) ]]; do
    sleep 1 # for three time limits
done
cp job.log log
[[ $(head scontrol show job "$job") == *"JobState=COMPLETED"* ]] || fail "the job has not ended well"
grep '^attempt ' job.log
attempts=$(grep -c '^attempt ' job.log)
((attempts >= 3)) || fail "it took only $attempts attempts"
[[ $(grep -c "^attempt [0-9]*\.0 of job $job on 2 nodes: " job.log) == "$attempts" ]] || fail "an attempt has failed"
[[ $(grep -c '^ended with status 75$' job.log) == $((attempts - 1)) && $(grep -c '^ended with status 0$' job.log) == 1 ]] ||
    fail "attempts have ended in another way"
[[ $(grep -c '^resumed ' job.log) == $((attempts - 1)) ]] || fail "an attempt has not resumed"

wait $straight || fail "the run without limits failed"

# Each step once, in order, with the bits of the other run.
grep '^exact ' straight.out >wanted
grep '^exact ' job.log >got
diff wanted got || fail "the losses are others"
for name in model.safetensors optimizer.safetensors; do
    cmp "straight/$(cat straight/latest)/$name" "run/$(cat run/latest)/$name" || fail "$name differs"
done
echo "$attempts attempts, $(wc -l <got) exact lines: as without limits"
