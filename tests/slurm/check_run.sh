#!/usr/bin/env bash
# fsdp-run in a batch job of four nodes, one of them a spare: a node is gone at once, the spare takes its place, the program
# goes on from its checkpoint; SIGUSR1 for the script then ends it with a checkpoint.
#
#   check_run.sh pmix|pmi2 FSDP_RUN GPT DATA
set -euo pipefail

# shellcheck source=tests/slurm/common.sh
. "$(dirname "$0")/common.sh"

pmi=$1 run=$2 program=$3 data=$4
cd "$folder"
export FSDP_TIMEOUT_S=20

cat >job.sh <<END
#!/bin/bash
#SBATCH --nodes=4 --no-kill --time=30 --output=job.log
"$run" --checkpoint "$folder/run" --spares 1 --min-nodes 2 --grace 10 --patience 20 -- \
    srun --mpi=$pmi --ntasks-per-node=1 --cpus-per-task=1 "$program" --data "$data" --layers 1 --heads 2 --width 32 --context 32 \
    --batch 24 --val-batches 1 --sample 0 --progress off --steps 1000000 --every 20 --interval 20 --checkpoint "$folder/run" & job=\$!
trap 'kill -USR1 \$job' USR1
while kill -0 \$job 2>/dev/null; do wait \$job; done
wait \$job; echo "status \$?"
END

# again: an attempt that has gone on from a checkpoint has made steps
again() {
    [[ $(awk '/^resumed / { fresh = 1 } /^step / && fresh { n++; fresh = 0 } END { print n + 0 }' job.log) -ge 1 ]]
}

job=$(head sbatch --parsable job.sh)
until_so "the program starts" grep -qs '^step ' job.log
[[ $(grep -c "^fsdp-run: attempt 1: 3 ranks on 3 nodes: $(node 0),$(node 1),$(node 2); spare: $(node 3)" job.log) == 1 ]] ||
    fail "the first attempt is another: $(grep '^fsdp-run' job.log)"
until_so "a checkpoint" test -e run/latest
"$cluster" kill 2
until_so "the spare takes its place" again
grep -q '^fsdp-run: attempt 1 ended after .*: node-gone: ' job.log || fail "the verdict: $(grep '^fsdp-run' job.log)"
grep -qx "fsdp-run: to blame: $(node 2)" job.log || fail "who is to blame: $(grep '^fsdp-run' job.log)"
grep -q "^fsdp-run: attempt 2: 3 ranks on 3 nodes: $(node 0),$(node 1),$(node 3); from step " job.log ||
    fail "the second attempt: $(grep '^fsdp-run' job.log)"
echo "a node that is gone: $(grep '^fsdp-run: attempt 1 ended' job.log)"
head scancel --batch --signal=USR1 "$job"
until_so "the end" grep -qs '^status ' job.log
[[ $(grep '^fsdp-run: stop: ' job.log) == "fsdp-run: stop: time-limit" ]] || fail "how it ends: $(grep '^fsdp-run' job.log)"
grep -qx 'status 75' job.log || fail "the status: $(tail -n 1 job.log)"
echo "SIGUSR1: it saves and stops"
