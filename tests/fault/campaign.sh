#!/usr/bin/env bash
# Faults at random moments, and what fsdp-run makes of them: `campaign.sh --help`.
set -euo pipefail

script=$(realpath "${BASH_SOURCE[0]}")
here=${script%/*}
cluster=$here/../cluster/cluster.sh

usage() {
    cat <<'END'
Usage: campaign.sh N SEED [BUILD]

Trains a small 03_gpt under fsdp-run on six virtual hosts (tests/cluster), of which two are spares, and does N things to it, drawn
with SEED, each when the program has saved a checkpoint since it was started. BUILD is the folder that was built (build/default).

Each time the verdict has to be the one in the table, and the host that is left out the one that it was done to. Each run has to
end with its line. If it always had the same number of ranks, the weights after its last step are those of an undisturbed run, bit
by bit; if it had fewer, each step's loss is within 1e-5 of that of the undisturbed one. Nothing may be left on any host.

It needs root; exits with 77, saying why, where virtual hosts cannot be had.
END
}

# What is done; what fsdp-run has to call it; whether it has to blame the host that it was done to.
readonly table=(
    "rank      gone           yes   SIGKILL of a rank"
    "ranks     node-gone      yes   SIGKILL of all ranks of a host"
    "cut       node-gone      yes   the link of a host is cut (not of the first, where fsdp-run is)"
    "stop      stopped        yes   SIGSTOP of a rank"
    "launcher  launcher       no    SIGKILL of mpirun"
    "memory    out-of-memory  yes   the control group of a host has no memory left"
    "disk      exit           no    the disk of the checkpoints is full"
    "term      interrupted    no    SIGTERM of fsdp-run, which is started again then"
)

mpirun=${FSDP_CLUSTER_MPIRUN:-mpirun}
readonly hosts=6 spares=2 ranks_per_host=2 steps=300 every=10 most_in_a_run=8
readonly last_steps=150 # in which nothing is done any more: a rank that stands still behind them is in nobody's operation

fail() {
    echo "campaign.sh: $1" >&2
    if [[ -e $work/log ]]; then
        cp "$work/log" "${TMPDIR:-/tmp}/campaign.$seed.log"
        grep '^fsdp-run: ' "$work/log" >&2 || true
        echo "campaign.sh: the log of this run is ${TMPDIR:-/tmp}/campaign.$seed.log" >&2
    fi
    exit 1
}

# until_so SECONDS WHAT COMMAND...: waits for it to be so
until_so() {
    local end=$((SECONDS + $1 * ${TEST_TIME_FACTOR:-1})) what=$2
    shift 2
    until "$@"; do
        ((SECONDS < end)) || fail "$what: it took too long"
        sleep 0.05
    done
}

# --- control groups of memory, one per host

if [[ -e /sys/fs/cgroup/memory/memory.oom_control ]]; then
    groups=/sys/fs/cgroup/memory limit=memory.limit_in_bytes used=memory.usage_in_bytes events=memory.oom_control
else
    groups=/sys/fs/cgroup limit=memory.max used=memory.current events=memory.events
fi

# group HOST: the folder of its group
group() {
    echo "$groups/$FSDP_CLUSTER_ID-$1"
}

make_groups() {
    local i
    has_groups=yes
    for ((i = 0; i < hosts; i++)); do
        if ! mkdir "$(group "$i")" 2>/dev/null || [[ ! -w $(group "$i")/$limit ]] || ! grep -q '^oom_kill ' "$(group "$i")/$events"; then
            has_groups=no # as in most containers
        fi
    done
}

remove_groups() {
    local i
    for ((i = 0; i < hosts; i++)); do
        rmdir "$(group "$i")" 2>/dev/null || true
    done
}

kills_of() {
    awk '$1 == "oom_kill" { print $2 }' "$(group "$1")/$events"
}

# exhaust HOST: takes memory in its group until the kernel kills something, and sets `killed` to how many ranks that were. What takes
# it is spared where that is permitted; else it may be what is killed, and this has failed.
exhaust() {
    local before status=0
    before=$(kills_of "$1")
    echo $(($(<"$(group "$1")/$used") + (16 << 20))) >"$(group "$1")/$limit"
    python3 - "$(group "$1")" "$before" "$events" <<'END' 2>/dev/null || status=$?
import os, sys
group, before, events = sys.argv[1:]
try:
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("-1000")
except PermissionError:
    pass
open(group + "/cgroup.procs", "w").write(str(os.getpid()))
kept = []
def kills():
    return next(line.split()[1] for line in open(group + "/" + events) if line.startswith("oom_kill "))
while kills() == before and len(kept) < 1 << 15:
    kept.append(b"x" * (1 << 14))
END
    if [[ $limit == *.max ]]; then
        echo max >"$(group "$1")/$limit"
    else
        echo -1 >"$(group "$1")/$limit"
    fi
    killed=$(($(kills_of "$1") - before))
    return "$status"
}

# --- one run

# start: fsdp-run on the first host. The program is the same in all of them.
start() {
    local run=("$build/tools/run/fsdp-run" --grace 10 --patience 10 --hostfile "$work/hosts" --spares $spares --min-nodes 2
        --max-restarts 50 --launcher openmpi --checkpoint "$disk/run" --records "$work/records" --
        "$mpirun" --oversubscribe --bind-to none
        --mca plm rsh --mca plm_rsh_agent "$cluster agent" --mca plm_rsh_no_tree_spawn 1
        --mca oob_tcp_if_include 10.77.0.0/24 --mca btl_tcp_if_include 10.77.0.0/24
        --mca pml ob1 --mca btl "tcp,vader,self" --mca mpi_yield_when_idle 1)
    [[ $has_groups == no ]] || run+=("$script" --in-group)
    unset OMPI_MCA_odls_base_sigkill_timeout # which CTest sets
    FSDP_TIMEOUT_S=5 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        "$cluster" enter 0 "${run[@]}" "$build/mpi-examples/03_gpt/03_gpt" --data "$here/../../mpi-examples/03_gpt/gpt_model.c" \
        --layers 1 --heads 2 --width 32 --context 32 --batch 24 --val-batches 1 --sample 0 --progress off --blas-threads 1 \
        --lr 0.001 --warmup 100 --steps $steps --interval $steps --exact --every $every --checkpoint "$disk/run" \
        >>"$work/log" 2>&1 </dev/null &
    run_pid=$!
}

latest() {
    local name
    name=$(cat "$disk/run/latest" 2>/dev/null) || true
    name=${name#step-}
    name=${name%%-*}
    echo $((10#${name:-0}))
}

# attempts COUNT WORDS: how many lines of fsdp-run begin so
lines() {
    grep -c "^fsdp-run: $1" "$work/log" || true
}

has_stopped() {
    [[ $(lines 'stop: ') -gt $stops ]]
}

has_ended() {
    [[ $(lines 'attempt [0-9]* ended ') -gt $1 ]] || has_stopped
}

# Whether the attempt under way has saved, or there will be none.
has_saved() {
    has_stopped || { [[ $(lines 'attempt [0-9]*: ') -gt $(lines 'attempt [0-9]* ended ') ]] && (($(latest) > $(first_step))); }
}

# The step from which the last attempt began.
first_step() {
    grep '^fsdp-run: attempt [0-9]*: ' "$work/log" | tail -n 1 | sed -n 's/.*; from step \([0-9]*\)$/\1/p' | grep . || echo 0
}

# Numbers of the hosts that the last attempt runs on.
hosts_now() {
    grep '^fsdp-run: attempt [0-9]*: ' "$work/log" | tail -n 1 | sed 's/.* nodes*: \([^;]*\).*/\1/' | grep -o 'host[0-9]*' | grep -o '[0-9]*$'
}

draw() {
    echo $((RANDOM % $1))
}

# do_it FAULT HOST
do_it() {
    case $1 in
    rank) "$cluster" enter "$2" pkill -KILL -n -x 03_gpt ;;
    ranks) "$cluster" enter "$2" pkill -KILL -x 03_gpt ;;
    stop) "$cluster" enter "$2" pkill -STOP -n -x 03_gpt ;;
    cut) "$cluster" cut "$2" ;;
    launcher) "$cluster" enter 0 pkill -KILL -P "$("$cluster" enter 0 pgrep -n -x fsdp-run)" ;; # the child of the keeper
    memory) exhaust "$2" ;;
    disk) dd if=/dev/zero of="$disk/full" bs=64k status=none 2>/dev/null || true ;;
    term) "$cluster" enter 0 pkill -TERM -x fsdp-run ;;
    esac </dev/null
}

# choose: sets fault, verdict, blames, what and victim
choose() {
    local now
    mapfile -t now < <(hosts_now)
    read -r fault verdict blames what <<<"${table[$(draw ${#table[@]})]}"
    victim=${now[$(draw ${#now[@]})]}
    [[ $fault != cut || $victim != 0 ]] || victim=${now[-1]}
    if [[ $fault == memory && $has_groups == no ]]; then
        read -r fault verdict blames what <<<"${table[0]}"
    fi
}

# The program gets on a little, and no fault comes at the same point of a step twice.
wait_a_moment() {
    sleep "0.$(printf '%02d' "$(draw 60)")"
}

check_verdict() {
    local ended blamed
    ended=$(grep '^fsdp-run: attempt [0-9]* ended ' "$work/log" | tail -n 1)
    if [[ $fault == term ]]; then
        [[ $(tail -n 1 "$work/log") == "fsdp-run: stop: interrupted" ]] || fail "$what: not interrupted"
        return
    fi
    [[ $ended == *": $verdict: "* ]] || fail "$what of host $victim: the verdict is not $verdict: $ended"
    blamed=$(grep -A 2 -F "$ended" "$work/log" | sed -n 's/^fsdp-run: to blame: //p')
    blamed=${blamed#"$FSDP_CLUSTER_ID-host"}
    [[ $blames == yes ]] || victim=''
    [[ $blamed == "$victim" ]] || fail "$what of host $victim: '$blamed' is blamed"
}

# one_fault: false where the run is over, or soon will be
one_fault() {
    local ended
    until_so 120 "a checkpoint" has_saved
    if has_stopped || (($(latest) > steps - last_steps)); then
        return 1
    fi
    wait_a_moment
    ended=$(lines 'attempt [0-9]* ended ')
    choose
    do_it "$fault" "$victim" || return 1 # it could not be done: the program was ending, or exhaust() was killed itself
    [[ $fault != memory || $killed -lt $ranks_per_host ]] || verdict=node-gone # nobody is left there to say more
    until_so 120 "$what: the end of the attempt" has_ended "$ended"
    rm -f "$disk/full"
    [[ $fault != cut ]] || cut_hosts+=("$victim")
    if (($(latest) == steps)); then # the program was ending: what has become of it says nothing
        [[ $fault != term ]] || go_on
        return 1
    fi
    if [[ $fault == term ]]; then
        wait "$run_pid" || true
        check_verdict
        go_on
    else
        until_so 60 "$what: the next attempt" blame_is_said
        check_verdict
    fi
    done_so_far=$((done_so_far + 1))
    echo "$done_so_far: $what${victim:+, host $victim}: $verdict"
}

# go_on: starts fsdp-run again where it was interrupted
go_on() {
    ! grep -q '^fsdp-run: stop: success' "$work/log" || return 0
    wait "$run_pid" || true # has been waited for, but where it was ending
    stops=$(lines 'stop: ')
    start
}

blame_is_said() {
    has_stopped || (($(lines 'attempt [0-9]*: ') > $(lines 'attempt [0-9]* ended ')))
}

clean_up() {
    local i
    for i in "${cut_hosts[@]}"; do
        "$cluster" mend "$i"
    done
    until "$cluster" left >"$work/left"; do
        ((SECONDS < $1)) || fail "this is left: $(cat "$work/left")"
        sleep 0.5
    done
    ! pgrep -x fsdp-run >/dev/null || fail "an fsdp-run is left"
}

# --- results

# losses LOG: "STEP LOSS" for each step, as it was computed last, and "validation LOSS" behind the last one
losses() {
    awk '/^exact step / { loss[$3] = $NF } /^exact validation loss / { loss["validation"] = $NF }
         END { for (step in loss) print step, loss[step] }' "$1" | sort
}

# compare_losses MOST: what a rank had not yet printed when its launcher was killed is not known
compare_losses() {
    join <(losses "$work/log") <(losses "$work/reference") | awk -v steps=$steps -v limit="$1" '
        { d = ($2 - $3) / $3; d = d < 0 ? -d : d; most = d > most ? d : most; ended = ended || $1 == "validation" }
        END { if (limit > 0) printf "fewer ranks: losses differ by at most %.1e\n", most
              exit most > limit || !ended || NR < steps * 0.8 }'
}

compare() {
    if (($(sed -n 's/^fsdp-run: attempt [0-9]*: \(.* -> \)*\([0-9]*\) ranks* on .*/\2/p' "$work/log" | sort -u | wc -l) == 1)); then
        [[ $(grep '^exact parameters [0-9a-f]*$' "$work/log" | sort -u) == "$weights" ]] ||
            fail "always 8 ranks, and other weights than without faults"
        compare_losses 0 || fail "always 8 ranks, and other losses than without faults"
        echo "the weights are those of the undisturbed run"
    else
        compare_losses 1e-5 || fail "losses are not those of the undisturbed run"
    fi
}

# one_run FAULTS
one_run() {
    rm -rf "$disk/run" "$work/log"
    cut_hosts=() stops=0
    : >"$work/log"
    start
    for ((i = 0; i < $1; i++)); do
        one_fault || break
    done
    local status=0
    wait "$run_pid" || status=$?
    [[ $(tail -n 1 "$work/log") == "fsdp-run: stop: success" && $status -eq 0 ]] || fail "the run ended with status $status"
    clean_up $((SECONDS + 40 * ${TEST_TIME_FACTOR:-1}))
}

main() {
    local number=$1 i
    done_so_far=0
    RANDOM=$seed
    make_groups
    trap remove_groups EXIT
    for ((i = 0; i < hosts; i++)); do
        echo "$FSDP_CLUSTER_ID-host$i slots=$ranks_per_host"
    done >"$work/hosts"
    one_run 0
    mv "$work/log" "$work/reference"
    weights=$(grep '^exact parameters [0-9a-f]*$' "$work/reference") || fail "the undisturbed run has not said its weights"
    while ((done_so_far < number)); do
        local most=$((number - done_so_far))
        one_run $((1 + $(draw $((most < most_in_a_run ? most : most_in_a_run)))))
        compare
    done
    echo "$number faults, seed $seed: each with its verdict"
}

case ${1-} in
--help | -h)
    usage
    exit 0
    ;;
--in-group) # of a rank: its command, in the group of its host
    host=$(hostname)
    echo $$ >"$groups/${host%-host*}-${host##*-host}/cgroup.procs"
    exec "${@:2}"
    ;;
--inside)
    seed=$3 build=$4 work=$5
    disk=$work/disk
    main "$2"
    exit 0
    ;;
esac

[[ ${1-} =~ ^[1-9][0-9]*$ && ${2-} =~ ^[0-9]+$ ]] || {
    echo "campaign.sh: N and SEED have to be numbers; see campaign.sh --help" >&2
    exit 2
}
seed=$2
build=$(realpath "${3:-$here/../../build/default}")
[[ -x $build/tools/run/fsdp-run && -x $build/mpi-examples/03_gpt/03_gpt ]] || {
    echo "campaign.sh: fsdp-run and 03_gpt are not in $build; build them, or name the folder" >&2
    exit 2
}
((EUID == 0)) || {
    echo "skipped: virtual hosts need root" >&2
    exit 77
}
[[ $("$mpirun" --version 2>&1) =~ \((Open MPI|OpenRTE)\)\ 4\. ]] || { # as mpirun says, and mpiexec
    echo "skipped: the options are those of Open MPI 4, which '$mpirun' is not" >&2
    exit 77
}
work=$(mktemp -d)
trap 'umount "$work/disk" 2>/dev/null; rm -rf "$work"' EXIT
mkdir "$work/disk" "$work/records"
mount -t tmpfs -o size=32m tmpfs "$work/disk"
"$cluster" with --hosts $hosts --rate 10gbit -- "$script" --inside "$1" "$seed" "$build" "$work"
