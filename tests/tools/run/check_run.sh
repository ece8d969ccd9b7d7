#!/usr/bin/env bash
# fsdp-run with a launcher and a way to other hosts that are scripts: how it ends, what it passes on, whom it leaves out, and that
# nothing stays.
#
#   check_run.sh FSDP_RUN
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../../support/check.sh"

run=$(realpath "$1")
cd "$folder"
unset SLURM_JOB_NODELIST PBS_NODEFILE LSB_DJOB_HOSTFILE FSDP_RECORD_DIR OMPI_MCA_plm_rsh_agent

# Stands in for mpirun: notes its --host, and becomes the program.
cat >launcher <<'END'
#!/bin/bash
while [[ $1 == -* ]]; do
    case $1 in
    --mca) shift 3 ;;
    --host) echo "$2" >>hosts.seen; shift 2 ;;
    *) shift 2 ;;
    esac
done
exec "$@"
END
# Stands in for ssh: a host does not answer, or does not see the folder, where a file says so.
cat >rsh <<'END'
#!/bin/bash
host=$1
[[ ! -e down.$host ]] || exit 255
[[ ! -e blind.$host ]] || exit 42
shift
exec bash -c "$*"
END
# The program: each time it is started, the next line of the file `plan`.
cat >program <<'END'
#!/bin/bash
n=$(($(cat count 2>/dev/null || echo 0) + 1))
echo $n >count
echo $$ >pid
save() { # STEP
    name=$(printf 'step-%09d' "$1")
    mkdir -p "run/$name"
    echo "$name" >run/latest
}
eval "$(sed -n "${n}p" plan)"
END
chmod +x launcher rsh program

# fsdp STATUS LAST_LINE OPTION...: runs it with the plan that is given on standard input
fsdp() {
    local expected=$1 last=$2 status=0
    shift 2
    cat >plan
    rm -rf run count hosts.seen
    "$run" --launcher openmpi --rsh "$folder/rsh" --grace 0.5 --patience 20 --checkpoint run "$@" -- \
        ./launcher -n "${ranks:-2}" ./program >out 2>err || status=$?
    ((status == expected)) || fail "status $status, not $expected: $*"
    [[ $(tail -n 1 out) == "$last" ]] || fail "the last line is not '$last'"
    ! pgrep -f "$folder/program" >/dev/null || fail "a program is left"
}

says() {
    grep -qE -- "$1" out err || fail "nobody says '$1'"
}

until_so() {
    local end=$((SECONDS + 60 * ${TEST_TIME_FACTOR:-1}))
    until "$@"; do
        ((SECONDS < end)) || fail "it is not so: $*"
        sleep 0.02
    done
}

# --- how it ends

fsdp 0 "fsdp-run: stop: success" <<<'save 5'
fsdp 0 "fsdp-run: stop: success" <<<$'save 5; kill -9 $$\n[[ $FSDP_RUN_ATTEMPT.$FSDP_RUN_FIRST_STEP.$FSDP_RUN_RANKS.$FSDP_RUN_NODES == 2.5.2.1 ]] || exit 9'
says '^fsdp-run: attempt 1 ended after .*, step 0 -> 5: launcher: The launcher was killed by signal 9'
says '^fsdp-run: attempt 2: 2 ranks on 1 node: .*; from step 5$'
fsdp 70 "fsdp-run: stop: app-error" <<<$'save 5; exit 3\nexit 3'
says 'exit, twice at the same step'
fsdp 71 "fsdp-run: stop: no-progress" <<<$'save 5; kill -9 $$\nkill -9 $$\nkill -9 $$'
says 'two attempts without a step'
fsdp 71 "fsdp-run: stop: no-progress" --max-restarts 1 <<<$'save 5; kill -9 $$\nsave 6; kill -9 $$'
says '--max-restarts 1 is used up'
fsdp 75 "fsdp-run: stop: time-limit" <<<'exit 75'
echo "each end has its line and its status"

# --- nodes

printf 'a\nb\nc slots=1\n' >all
touch down.b
fsdp 0 "fsdp-run: stop: success" --hostfile all --spares 1 <<<'save 5'
says 'no answer from b'
[[ $(<hosts.seen) == a:1,c:1 ]] || fail "the nodes are $(<hosts.seen), not a and c"
rm down.b
fsdp 0 "fsdp-run: stop: success" --hostfile all --spares 1 --min-nodes 1 <<<$'save 5; touch down.a; exit 1\nsave 6; touch down.b; exit 1\nsave 7'
[[ $(tr '\n' ' ' <hosts.seen) == "a:1,b:1 b:1,c:1 c:1 " ]] || fail "the nodes are $(<hosts.seen)"
says 'attempt 1 ended .*: node-gone: No answer from a\.'
says '^fsdp-run: to blame: a$'
says '^fsdp-run: attempt 3: 2 -> 1 rank on 1 node: c'
rm down.a down.b
fsdp 69 "fsdp-run: stop: no-nodes" --hostfile all --spares 1 --min-nodes 2 <<<$'save 5; touch down.a down.b; exit 1'
says '^fsdp-run: 1 node is left, and --min-nodes is 2$'
rm down.a down.b
touch blind.b
fsdp 3 "" --hostfile all --spares 1 <<<'save 5'
[[ ! -e count ]] || fail "the program was started on a node that does not see the folder"
says "$folder/run: b does not see this folder"
rm blind.b
echo "nodes: spares, fewer, none, and one that does not see the folder"

# bad WORDS OPTION...: refused before anything is started
bad() {
    local words=$1 status=0
    shift
    rm -f count
    "$run" --launcher openmpi "$@" >out 2>err || status=$?
    ((status == 2)) || fail "status $status, not 2: $*"
    says "$words"
    [[ ! -e count ]] || fail "something was started: $*"
}
printf 'a\nb\na\n' >twice
command=(-- ./launcher -n 2 ./program)
bad "the node 'a' is in it twice" --hostfile twice "${command[@]}"
bad '--hostfile has 3 nodes, and --min-nodes is 4' --hostfile all --min-nodes 4 "${command[@]}"
bad 'with --spares 2 fewer than --min-nodes 2 would begin' --hostfile all --spares 2 --min-nodes 2 "${command[@]}"
bad '2 ranks cannot be divided equally over 3 nodes' --hostfile all "${command[@]}"
bad 'how many ranks' --hostfile all -- ./launcher ./program
bad 'there is no command' --hostfile all
SLURM_JOB_NODELIST='n[1-2' bad 'SLURM_JOB_NODELIST: .*does not end' "${command[@]}"
echo "bad lists are refused by name"

# --- signals, and its own end

# background PLAN: starts it, and waits until the program runs
background() {
    echo "$1" >plan
    rm -rf run count pid
    "$run" --launcher openmpi --grace 0.5 --checkpoint run -- ./launcher -n 2 ./program >out 2>err &
    job=$!
    until_so test -s pid
    until_so test -e ready
    rm ready
}

ends() {
    local status=0
    wait "$job" || status=$?
    ((status == $1)) || fail "$2: status $status, not $1"
    [[ $(tail -n 1 out) == "fsdp-run: stop: $3" ]] || fail "$2: the last line"
    ! kill -0 "$(<pid)" 2>/dev/null || fail "$2: the program is left"
}

background 'trap "save 5; exit 75" USR1; touch ready; while :; do sleep 0.02; done'
kill -USR1 "$job"
ends 75 "SIGUSR1" time-limit
background 'trap "" TERM; touch ready; while :; do sleep 0.02; done'
kill -TERM "$job"
ends 143 "SIGTERM that is ignored" interrupted
background 'trap "exit 5" INT; touch ready; while :; do sleep 0.02; done'
kill -INT "$job"
ends 130 "SIGINT" interrupted
echo "signals pass through, and a program that ignores SIGTERM is killed"

background 'setsid bash -c "trap \"\" TERM; echo \$\$ >deep; touch ready; while :; do sleep 0.02; done" & wait'
status=0
"$run" --launcher openmpi --checkpoint run "${command[@]}" >out2 2>&1 || status=$?
((status == 3)) || fail "a second one: status $status, not 3"
grep -q "another fsdp-run looks after this folder (host $(hostname), process $job)" out2 || fail "a second one: $(<out2)"
kill -KILL "$job"
wait "$job" 2>/dev/null || true
gone() { ! kill -0 "$1" 2>/dev/null; }
until_so gone "$(<pid)"
until_so gone "$(<deep)"
rm -f count
echo 'save 5' >plan
until_so "$run" --launcher openmpi --checkpoint run "${command[@]}" >out 2>err # the folder is free when all has ended
[[ $(tail -n 1 out) == "fsdp-run: stop: success" ]] || fail "after one that was killed"
echo "a second one refuses; when fsdp-run is killed the job ends, and the next one has the folder"
