#!/usr/bin/env bash
# docs/slurm/several-nodes.sh on four nodes, of which one is set down, one is gone at once, and one is the first. Each time the
# program starts again from a checkpoint, on the nodes that are left or, with the first one, as the job is queued again.
#
#   check_lost_nodes.sh pmix|pmi2 SCRIPT GPT DATA
set -euo pipefail

# shellcheck source=tests/slurm/common.sh
. "$(dirname "$0")/common.sh"

pmi=$1 script=$2 program=$3 data=$4
cd "$folder"
export FSDP_TIMEOUT_S=60

# Small, and steps enough to be at it when a node goes.
options=(--data "$data" --layers 1 --heads 2 --width 32 --context 32 --batch 24 --val-batches 1 --sample 0 --progress off
    --steps 1000000 --every 20 --interval 20 --checkpoint "$folder/run")
adapt "$script" ranks_per_node=1 cpus_per_rank=1 look_every_s=1 "mpi=$pmi" most_failures=20 >job.sh

# resumed N: so many attempts have gone on from a checkpoint and made steps since
resumed() {
    [[ $(awk '/^resumed / { fresh = 1 } /^step / && fresh { n++; fresh = 0 } END { print n + 0 }' job.log) -ge $1 ]]
}

# lost WHAT NODES: the next attempt is on these, and all of them are what it says
lost() {
    local what=$1 nodes=$2
    attempts=$((attempts + 1))
    until_so "$what: the program starts again" resumed "$attempts"
    [[ $(grep '^attempt ' job.log | tail -n 1) == *" of job $job on $(wc -w <<<"$nodes") nodes: ${nodes// /,}" ]] ||
        fail "$what: the last attempt is another: $(grep '^attempt ' job.log)"
    echo "$what: $(grep '^attempt ' job.log | tail -n 1), $(grep '^resumed ' job.log | tail -n 1)"
}

attempts=0
job=$(head sbatch --parsable --output=job.log job.sh)
until_so "the program starts" grep -qs '^step ' job.log
[[ $(grep '^attempt ' job.log) == "attempt 0.0 of job $job on 4 nodes: "* ]] || fail "the first attempt is another"

head scontrol update "nodename=$(node 3)" state=down reason=test
lost "a node that is set down" "$(node 0) $(node 1) $(node 2)"
"$cluster" kill 2
lost "a node that is gone at once" "$(node 0) $(node 1)"

# The script itself is lost with the first node. Two others are needed for the job: those that were lost come back.
head scontrol update "nodename=$(node 3)" state=resume
"$cluster" mend 2
"$slurm_tests/slurm.sh" revive "${SLURM_CONF%/*}" 2
"$cluster" kill 0
lost "the first node" "$(node 1) $(node 2) $(node 3)"
grep -q "^attempt 1\.0 of job $job " job.log || fail "Slurm has not queued the job again"

# A program that is wrong ends the job, after as many failures as the script allows. srun ends the other ranks: 143.
head scancel "$job"
sed "s|^program=.*|program=(sh -c 'echo wrong; exit 3')|; s|^most_failures=20|most_failures=3|; s|--output=.*|--output=wrong.log|" job.sh >wrong.sh
status=0
head sbatch --wait --quiet wrong.sh || status=$?
((status == 3 || status == 143)) || fail "a program that is wrong: status $status"
[[ $(grep -Ec '^ended with status (3|143)' wrong.log) -eq 3 ]] || fail "a program that is wrong: $(cat wrong.log)"
echo "a program that is wrong: three failures end the job, with its status"
