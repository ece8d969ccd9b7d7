#!/usr/bin/env bash
# Slurm on the virtual hosts of tests/cluster: `slurm.sh --help`.
set -euo pipefail

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
cluster=$here/../cluster/cluster.sh

usage() {
    cat <<'END'
Usage: slurm.sh start FOLDER
       slurm.sh revive FOLDER HOST
       slurm.sh stop FOLDER
       slurm.sh with [--] COMMAND [ARGUMENT...]

start   starts Slurm on a cluster that is up: slurmctld on the last host, and slurmd on each of the others, which are
        the nodes. FOLDER, which must not exist, gets configuration, logs and state
revive  starts slurmd again on a host that was killed and mended
stop    ends it
with    does both for COMMAND, with a folder that is removed afterwards

Commands of Slurm find it by SLURM_CONF, which is FOLDER/slurm.conf; `with` sets that for COMMAND. They work on hosts only:

    cluster.sh with --hosts 5 -- slurm.sh with -- cluster.sh enter 4 srun --nodes=4 hostname

Each node has the cores of this machine, and two GPUs that are names only. The partition `all` has all nodes.

Exits with the status of COMMAND; 2 for wrong arguments; 77, saying why, where there is no Slurm.
END
}

fail() {
    echo "slurm.sh: $1" >&2
    exit 1
}

misuse() {
    echo "slurm.sh: $1; see slurm.sh --help" >&2
    exit 2
}

skip() {
    echo "skipped: $1" >&2
    exit 77
}

require() {
    local tool
    for tool in munged slurmctld slurmd srun sbatch scontrol; do
        PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null ||
            skip "there is no '$tool'; cmake/dependencies.sh slurm installs Slurm"
    done
}

# --- configuration

# What is odd in it: nodes share /tmp and the sockets in `folder`. Credentials live 5 s, since a job that is queued again waits
# until those that it had are too old; 120 s would be usual. ReturnToService=1 leaves a node down that was set down by hand.
# Ranks of several nodes share cores here, so that none is bound unless it asks for it. /tmp is of all nodes, so that PMIx has its
# files elsewhere; docs/slurm.md says why its fence is a ring.
configure() {
    local last=$(($1 - 1)) shape
    shape=$(slurmd -C | grep -o ' CPUs=.*') || fail "slurmd -C says nothing"
    cat >"$folder/slurm.conf" <<END
ClusterName=fsdp
SlurmctldHost=$FSDP_CLUSTER_ID-host$last(10.77.0.$((last + 1)))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
TaskPluginParam=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=1
SlurmctldTimeout=30
SlurmdTimeout=10
MessageTimeout=5
KillWait=5
JobRequeue=1
SchedulerParameters=batch_sched_delay=1,sched_interval=2
PriorityType=priority/basic
GresTypes=gpu
END
    local i
    for ((i = 0; i < last; i++)); do
        echo "NodeName=$FSDP_CLUSTER_ID-host$i NodeAddr=10.77.0.$((i + 1))$shape Gres=gpu:2 State=UNKNOWN" >>"$folder/slurm.conf"
    done
    echo "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP" >>"$folder/slurm.conf"
    printf "%s\n" "PMIxCliTmpDirBase=/dev/shm" "PMIxCollFence=ring" >"$folder/mpi.conf"
    touch "$folder/gpu0" "$folder/gpu1"
    echo "Name=gpu File=$folder/gpu[0-1]" >"$folder/gres.conf"
}

# --- daemons

start_munge() {
    (umask 077 && head -c 128 /dev/urandom >"$folder/munge.key")
    munged --force "--socket=$folder/munge.socket" "--key-file=$folder/munge.key" "--pid-file=$folder/munge.pid" \
        "--log-file=$folder/munge.log" "--seed-file=$folder/munge.seed" 2>"$folder/munge.err" ||
        fail "munged does not start: $(cat "$folder/munge.err")"
}

# daemon HOST PROGRAM ARGUMENT...: on a host, until it is stopped or the host ends
daemon() {
    local host=$1
    shift
    # shellcheck disable=SC2016 # for the inner bash to expand
    "$cluster" enter "$host" bash -c 'setsid "$@" >>"$0" 2>&1 </dev/null &' "$folder/$1.$host.out" "$@"
}

revive() {
    (($# == 2)) || misuse "revive needs a folder and a host"
    folder=$1 SLURM_CONF=$1/slurm.conf
    export SLURM_CONF
    daemon "$2" slurmd -D
}

show_logs() {
    tail -n 20 "$folder"/*.log "$folder"/*.out >&2 || true
}

start() {
    (($# == 1)) || misuse "start needs a folder"
    [[ -n ${FSDP_CLUSTER_ID-} ]] || misuse "no cluster is named by FSDP_CLUSTER_ID"
    local hosts i end
    hosts=$(ip netns list 2>/dev/null | grep -c "^$FSDP_CLUSTER_ID-host[0-9]") || true
    ((hosts > 1)) || fail "cluster '$FSDP_CLUSTER_ID' has $hosts hosts; it takes two"
    mkdir "$1" || fail "the folder must not exist"
    folder=$(realpath "$1")
    mkdir "$folder/state" "$folder/spool"
    configure "$hosts"
    export SLURM_CONF=$folder/slurm.conf
    start_munge
    daemon $((hosts - 1)) slurmctld -D &
    for ((i = 0; i < hosts - 1; i++)); do
        daemon "$i" slurmd -D &
    done
    wait
    end=$((SECONDS + 60 * ${TEST_TIME_FACTOR:-1}))
    until [[ $("$cluster" enter $((hosts - 1)) sinfo --noheader --states=idle --responding --format=%D 2>/dev/null) == $((hosts - 1)) ]]; do
        ((SECONDS < end)) || { show_logs && fail "the nodes do not come up"; }
        sleep 0.2 # for the daemons, however long it takes
    done
}

stop() {
    (($# == 1)) || misuse "stop needs a folder"
    local host folder=$1
    for host in $(ip netns list 2>/dev/null | sed -n "s/^$FSDP_CLUSTER_ID-host\([0-9]*\).*/\1/p"); do
        "$cluster" enter "$host" pkill -KILL -x 'slurm(ctld|d|stepd)' >/dev/null 2>&1 </dev/null &
    done
    wait
    [[ ! -s $folder/munge.pid ]] || kill "$(cat "$folder/munge.pid")" 2>/dev/null || true
}

# What was killed may still be at its last write.
finish() {
    local tries=50
    stop "$folder"
    until rm -rf "${folder%/*}" || ((--tries == 0)); do
        sleep 0.2
    done
}

with() {
    local status=0
    [[ ${1-} != -- ]] || shift
    (($# > 0)) || misuse "with needs a command"
    folder=$(mktemp -d)/slurm
    trap finish EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    start "$folder"
    "$@" || status=$?
    return "$status"
}

export PATH=$PATH:/usr/sbin:/sbin
case ${1-} in
start | revive | stop | with)
    require
    "$@"
    ;;
--help | -h) usage ;;
*) misuse "there is no subcommand '${1-}'" ;;
esac
