#!/usr/bin/env bash
# A job of four nodes with two ranks each, one of which is stopped: fsdp-top and fsdp-why name it, over all nodes by a step of the
# job itself, as docs/faults.md says; what is saved names it when the job is over.
#
#   check_tools.sh PMI TOP WHY GPT DATA
set -euo pipefail

# shellcheck source=tests/slurm/common.sh
. "$(dirname "$0")/common.sh"

pmi=$1 top=$2 why=$3 program=$4 data=$5
cd "$folder"

cat >job.sh <<END
#!/bin/bash
#SBATCH --nodes=4 --ntasks-per-node=2 --time=30 --output=job.log
srun --mpi=$pmi "$program" --data "$data" --layers 1 --heads 2 --width 32 --context 32 --batch 8 --val-batches 1 --sample 0 \
    --progress off --steps 1000000 --interval 20
END

# by_step TOOL ARGUMENT...: the tool over all nodes of the job
by_step() {
    head "$1" --slurm "$job" --remote "$top" --after 1 "${@:2}"
}

names_it() {
    status=0
    by_step "$why" >why 2>err || status=$?
    ((status == 11)) # stopped
}

job=$(head sbatch --parsable job.sh)
until_so "the program starts" grep -qs '^step ' job.log
by_step "$top" --once >top || fail "fsdp-top on a job that gets on: status $?"
grep -q ': 8 ranks on 4 nodes, records of 8$' top || fail "fsdp-top does not see all ranks: $(cat top)"

# The second rank that Slurm has started on the third node.
host=$(node 2)
process=$("$cluster" enter 2 pgrep --newest --exact 03_gpt </dev/null)
"$cluster" enter 2 kill -STOP "$process" </dev/null
until_so "fsdp-why names it" names_it
grep -q "^Rank [0-7] on $host (process $process) is stopped" why || fail "fsdp-why: $(cat why)"
by_step "$top" --once >top || fail "fsdp-top on a job that hangs: status $?"
grep -Eq "^ +[0-7] +$host +$process .* stopped; .* <--\$" top || fail "fsdp-top: $(cat top)"
echo "a rank that is stopped: $(tr "\n" " " <why)"

by_step "$why" --save records >why || true
head scancel --signal=KILL "$job"
[[ $(find records -name '*.record' | wc -l) -eq 8 ]] || fail "not all is saved: $(ls records)"
status=0
"$why" records >why || status=$?
grep -q "^Rank [0-7] on $host (process $process) is stopped" why || fail "from what was saved: status $status, $(cat why)"
echo "what was saved says so too, when the job is over"
