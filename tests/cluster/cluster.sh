#!/usr/bin/env bash
# Several hosts on one machine, with links of a given rate between them, and Open MPI on them; see `cluster.sh --help`.
#
# A host is a network namespace, joined by a veth pair to a bridge in another network namespace. Both ends of the pair
# send through a token bucket (tbf), so that each host has one full-duplex link. A host also has a name, process ids,
# System V IPC, mounts and /dev/shm of its own, which last until the cluster ends: MPI sees different nodes, what runs on
# one host sees each other, and what it leaves behind stays to be found. host.py is the first process of each; when that
# ends, so do all others there.
set -euo pipefail

script=$(realpath "${BASH_SOURCE[0]}")
here=${script%/*}
cluster=${FSDP_CLUSTER_ID:-fsdp}
cores=${FSDP_CLUSTER_CORES:-shared}
child='' # what contain() runs, while it runs
# The system's own: a wrapper that chooses among several takes longer than all else here.
python=$(command -v /usr/bin/python3 || command -v python3 || echo none)

readonly subnet=10.77.0 # of every cluster: none can see another, nor the machine
readonly most_hosts=64
readonly door=7722 # the port that tells another host whether the network leads to this one
readonly sockets=/run/fsdp-cluster # of the hosts of all clusters

usage() {
    cat <<'END'
Usage: cluster.sh up [--hosts N] [--rate RATE]
       cluster.sh run HOST_SPEC [--by-slot | --by-node] [MPIRUN OPTION...] PROGRAM [ARGUMENT...]
       cluster.sh enter HOST COMMAND [ARGUMENT...]
       cluster.sh left [HOST...]
       cluster.sh cut | mend | kill HOST
       cluster.sh down
       cluster.sh with [--hosts N] [--rate RATE] [--] COMMAND [ARGUMENT...]

up      makes N virtual hosts (4), each on a link that carries RATE (1gbit) in either direction
run     runs PROGRAM under Open MPI's mpirun, over TCP between hosts and over shared memory within one
enter   runs COMMAND on a host: a number from 0, or the name that `hostname` prints there
left    lists the processes, the files in /dev/shm and the System V IPC that are on hosts (all); exits with 1 if there
        are any
cut     cuts the link of a host, whose processes go on
kill    takes a host away at once: its link is cut, and its processes, its memory and its /dev/shm are gone
mend    joins the link again, and starts a host that was killed, empty
down    ends all that runs on the hosts, and removes them
with    does `up` for COMMAND alone, and `down` when it ends, fails or is interrupted

HOST_SPEC is 4x2 for two slots on each of the hosts 0 to 3, or the slots of each: 1,3,2. There is a rank per slot.
--by-slot (the default) fills one host after the other, --by-node deals ranks out to the hosts in turn.
RATE is what tc takes: 1gbit, 250mbit. 1gbit is 125e6 bytes/s with headers, about 94% of which is payload.

The variable FSDP_CLUSTER_ID (fsdp) tells clusters apart that are up at the same time. `with` sets it to a name of its
own for COMMAND, so that `run` and `enter` find the hosts:

    cluster.sh with --hosts 4 --rate 1gbit -- cluster.sh run 4x2 PROGRAM

Only SIGKILL keeps `with` from removing the hosts. FSDP_CLUSTER_ID=fsdp-PID cluster.sh down does it then; the name is in
`ip netns list`.

FSDP_CLUSTER_CORES=own gives a host cores of its own when it is started: host N of H gets the cores N, N+H, ...; if there are
fewer cores than hosts, core N modulo their number. By default (shared) all hosts run on all cores, and with more ranks than
cores chance decides which ranks share one.

FSDP_CLUSTER_MPIRUN names the mpirun, if it is not the one on the path. PROGRAM and COMMAND see the variables of the
caller, save TMPDIR: /dev/shm, which is the host's own; other folders are those of the machine, as on a shared disk.

What COMMAND leaves behind when it ends stays on the host. If `enter` or `run` is ended instead, all processes that it has
started are killed; their files stay. SIGUSR1 and SIGUSR2 are handed on.

`cluster.sh agent HOST WORD...` stands in for ssh on the hosts themselves: --mca plm_rsh_agent 'cluster.sh agent' for an
mpirun of one's own. It ends with 255 if the network does not lead to HOST.

Exits with the status of the command; 2 for wrong arguments; 77, saying why, where virtual hosts cannot be had: they
take root, python3, ip and tc (package iproute2), and a kernel with network namespaces, bridges, veth and tbf.
END
}

fail() {
    echo "cluster.sh: $1" >&2
    exit 1
}

misuse() {
    echo "cluster.sh: $1; see cluster.sh --help" >&2
    exit 2
}

skip() {
    echo "skipped: $1" >&2
    exit 77
}

# --- processes

# finish: ends what contain() runs. The child of `unshare` is the init of its namespace, which goes last.
finish() {
    local init
    trap '' INT TERM HUP
    [[ -n $child ]] || return 0
    init=$(pgrep -P "$child") || true
    {
        kill -KILL "$child" ${init:+"$init"} || true
        wait "$child" || true
    } 2>/dev/null # where bash would report a job as killed
    while [[ -n $init && $(ps -o stat= -p "$init") == [^Z]* ]]; do
        sleep 0.02 # for the others to go, however long it takes
    done
    child=''
}

# contain COMMAND...: runs a command in process, host name, IPC and mount namespaces of its own, and gives its status. All
# processes that it starts end with it, and with this script, also if that is killed.
contain() {
    local status=0 input
    exec {input}<&0 # or else a job in the background reads from /dev/null
    # `exit` keeps bash from replacing itself: it is the init of its namespace, which reaps orphans.
    # shellcheck disable=SC2016 # for the inner bash to expand
    setpriv --pdeathsig KILL unshare --uts --ipc --pid --fork --kill-child --mount-proc \
        bash -c '"$@"; exit' bash "$@" <&"$input" {input}<&- &
    child=$!
    wait "$child" || status=$?
    child=''
    exec {input}<&-
    return "$status"
}

# --- hosts

# namespaces: those of this cluster that exist; `fsdp` must not take those of `fsdp-7` for its own.
namespaces() {
    # Those of clusters that came up after this mount namespace did not reach it, and ip complains.
    ip netns list 2>/dev/null | awk -v cluster="$cluster" '$1 ~ "^" cluster "-(switch|host[0-9]+)$" { print $1 }'
}

count_hosts() {
    namespaces | grep -c -- '-host[0-9]*$' || true
}

# socket_of HOST_NAME: by the number of its network namespace, which no other has, whatever the cluster is called
socket_of() {
    echo "$sockets/$(stat -L -c %i "/run/netns/$1")"
}

# number_of HOST_NAME
number_of() {
    echo "${1##*-host}"
}

# find_host HOST: sets host to the name
find_host() {
    host=$1
    [[ $host =~ [^0-9] ]] || host=$cluster-host$host
    [[ $host != "$cluster-switch" ]] && namespaces | grep -qxF -- "$host" && return
    fail "cluster '$cluster' has no host '$host', but $(count_hosts) hosts from 0"
}

# attempt WHAT COMMAND...: WHAT is that which the kernel may refuse to do
attempt() {
    local what=$1 message
    shift
    message=$("$@" 2>&1) || skip "no $what here: '$*' says: $message"
}

require() {
    local tool
    ((EUID == 0)) || skip "virtual hosts need root; this is $(id -un)"
    for tool in ip tc unshare nsenter setsid setpriv taskset hostname mount pgrep ps; do
        command -v "$tool" >/dev/null || skip "there is no '$tool'"
    done
    [[ $python != none ]] || skip "there is no 'python3'"
    [[ $cluster =~ ^[a-zA-Z][a-zA-Z0-9-]{0,40}$ ]] ||
        misuse "FSDP_CLUSTER_ID is '$cluster', but names of hosts begin with it: use up to 40 letters, digits and '-'"
    [[ $cores == own || $cores == shared ]] || misuse "FSDP_CLUSTER_CORES is '$cores'; use own or shared"
}

# limit NAMESPACE DEVICE RATE: bursts of 128 KiB are 1 ms at 1 Gbit/s; at most 20 ms of traffic are queued
limit() {
    attempt "token bucket filter (tbf)" tc -n "$1" qdisc add dev "$2" root tbf rate "$3" burst 128k latency 20ms
}

add_host() {
    local host=$cluster-host$1 switch=$cluster-switch port=port$1 rate=$2
    attempt "network namespaces" ip netns add "$host"
    attempt "veth pairs" ip link add eth0 netns "$host" type veth peer name "$port" netns "$switch"
    attempt "bridge" ip -n "$switch" link set "$port" master bridge up
    ip -n "$host" addr add "$subnet.$(($1 + 1))/24" dev eth0
    ip -n "$host" link set lo up
    ip -n "$host" link set eth0 up
    limit "$host" eth0 "$rate"
    limit "$switch" "$port" "$rate"
}

# cores_of HOST_NAME: all that this script may use, or the host's own
cores_of() {
    local host=0 hosts=1
    [[ $cores == shared ]] || { host=$(number_of "$1") hosts=$(count_hosts); }
    "$python" -c 'import os, sys
host, hosts, cores = *map(int, sys.argv[1:]), sorted(os.sched_getaffinity(0))
print(*cores[host % len(cores)::hosts], sep=",")' "$host" "$hosts"
}

# boot HOST_NAME...: starts the first process of each, in namespaces of its own, and waits until commands can come
boot() {
    local host line file files=()
    mkdir -p "$sockets"
    for host in "$@"; do
        rm -f "$(socket_of "$host")"
        # shellcheck disable=SC2016 # for the inner bash to expand
        exec {file}< <(exec setsid taskset -c "$(cores_of "$host")" nsenter "--net=/run/netns/$host" \
            unshare --uts --ipc --pid --mount --fork --kill-child --mount-proc \
            bash -c 'hostname "$1" && mount -t tmpfs tmpfs /dev/shm && exec "${@:2}"' bash "$host" \
            "$python" "$here/host.py" serve "$(socket_of "$host")" $door 2>&1 </dev/null)
        files+=("$file")
    done
    for file in "${files[@]}"; do
        read -r -u "$file" line || true
        [[ $line == ready ]] || skip "no namespaces for processes, host names and mounts here: $line"
        exec {file}<&-
    done
}

# end_hosts NAMESPACE...: ends all processes on hosts, of which some may be down, or not have come up
end_hosts() {
    local name processes
    for name in "$@"; do
        [[ ! -S $(socket_of "$name") ]] || timeout 60 "$python" "$here/host.py" halt "$(socket_of "$name")" 2>/dev/null || true
        while processes=$(ip netns pids "$name") && [[ -n $processes ]]; do
            xargs kill -KILL <<<"$processes" 2>/dev/null || true
            sleep 0.02 # until they have gone, however long it takes
        done
        rm -f "$(socket_of "$name")"
    done
}

raise() {
    local hosts=$1 rate=$2 i names=()
    [[ -z $(namespaces) ]] || fail "cluster '$cluster' is up already; 'cluster.sh down' ends it"
    trap lower EXIT
    attempt "network namespaces" ip netns add "$cluster-switch"
    attempt "bridge" ip -n "$cluster-switch" link add bridge type bridge
    ip -n "$cluster-switch" link set bridge up
    for ((i = 0; i < hosts; i++)); do
        add_host "$i" "$rate"
        names+=("$cluster-host$i")
    done
    boot "${names[@]}"
}

# lower: ends all processes on the hosts, then removes them; until the first is done there may be new ones
lower() {
    local name names
    finish
    names=$(namespaces)
    # shellcheck disable=SC2086 # names without spaces
    end_hosts $names
    for name in $names; do
        ip netns del "$name"
    done
    rmdir "$sockets" 2>/dev/null || true # unless another cluster is up
}

# --- subcommands

# parse_size OPTION...: sets hosts, rate and n_parsed
parse_size() {
    local given=$#
    hosts=4 rate=1gbit
    while [[ ${1-} == --?* ]]; do
        (($# > 1)) || misuse "$1 needs a value"
        case $1 in
        --hosts) hosts=$2 ;;
        --rate) rate=$2 ;;
        *) misuse "unknown option '$1'" ;;
        esac
        shift 2
    done
    n_parsed=$((given - $#))
    [[ $hosts =~ ^[1-9][0-9]?$ && $hosts -le $most_hosts ]] || misuse "--hosts is '$hosts'; use 1 to $most_hosts"
    [[ $rate =~ ^[1-9][0-9]*[kmg]bit$ ]] || misuse "--rate is '$rate'; use a whole number of kbit, mbit or gbit"
}

up() {
    local hosts rate n_parsed
    parse_size "$@"
    (($# == n_parsed)) || misuse "up does not take '${*:n_parsed+1}'"
    raise "$hosts" "$rate"
    trap finish EXIT
    echo "cluster $cluster: $hosts hosts, links of $rate"
}

down() {
    (($# == 0)) || misuse "down does not take '$*'"
    lower
}

with() {
    local hosts rate n_parsed
    parse_size "$@"
    shift "$n_parsed"
    [[ ${1-} != -- ]] || shift
    (($# > 0)) || misuse "with needs a command"
    cluster+=-$$
    export FSDP_CLUSTER_ID=$cluster
    raise "$hosts" "$rate"
    contain "$@"
}

enter() {
    (($# > 1)) || misuse "enter needs a host and a command"
    local host
    find_host "$1"
    shift
    exec "$python" "$here/host.py" enter "$(socket_of "$host")" "$@"
}

# agent HOST_NAME WORD...: what mpirun calls as it would call ssh: the words are a line for the shell
agent() {
    (($# > 1)) || misuse "agent needs the name of a host and a command"
    local host=$1
    [[ -e /run/netns/$host ]] || fail "there is no host '$host'"
    shift
    exec "$python" "$here/host.py" reach "$subnet.$(($(number_of "$host") + 1))" $door "$(socket_of "$host")" bash -c "$*"
}

left() {
    local host found status=0 hosts=("$@")
    (($# > 0)) || mapfile -t hosts < <(namespaces | grep -- '-host[0-9]*$' | sort -V)
    ((${#hosts[@]} > 0)) || fail "cluster '$cluster' is not up"
    for host in "${hosts[@]}"; do
        find_host "$host"
        [[ -S $(socket_of "$host") ]] || continue # nothing is left on a host that is down
        found=$("$python" "$here/host.py" left "$(socket_of "$host")") || {
            status=1
            echo "$host: ${found//$'\n'/$'\n'"$host: "}"
        }
    done
    exit "$status"
}

# link HOST_NAME up|down
link() {
    ip -n "$cluster-switch" link set "port$(number_of "$1")" "$2"
}

cut() {
    (($# == 1)) || misuse "cut needs one host"
    local host
    find_host "$1"
    link "$host" down
}

# The link first: other hosts hear nothing of the end.
kill_host() {
    (($# == 1)) || misuse "kill needs one host"
    local host
    find_host "$1"
    link "$host" down
    end_hosts "$host"
}

mend() {
    (($# == 1)) || misuse "mend needs one host"
    local host
    find_host "$1"
    [[ -S $(socket_of "$host") ]] || boot "$host"
    link "$host" up
}

# parse_spec HOST_SPEC: sets slots, an array
parse_spec() {
    local i
    slots=()
    if [[ $1 =~ ^([1-9][0-9]?)x([1-9][0-9]*)$ ]]; then
        for ((i = 0; i < BASH_REMATCH[1]; i++)); do
            slots+=("${BASH_REMATCH[2]}")
        done
    elif [[ $1 =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]]; then
        IFS=, read -ra slots <<<"$1"
    else
        misuse "HOST_SPEC is '$1'; give HOSTSxSLOTS, such as 4x2, or slots, such as 1,3,2"
    fi
    local found
    found=$(count_hosts)
    ((found > 0)) || fail "cluster '$cluster' is not up; 'cluster.sh up' or 'cluster.sh with' make one"
    ((${#slots[@]} <= found)) || fail "'$1' names ${#slots[@]} hosts, but cluster '$cluster' has $found"
}

# list_hosts slot|node: the host of each rank
list_hosts() {
    local i left=("${slots[@]}") hosts=''
    while ((${#left[@]} > 0)); do
        for i in "${!left[@]}"; do
            for ((; left[i] > 0; left[i]--)); do
                hosts+=,$cluster-host$i
                [[ $1 == slot ]] || { left[i]=$((left[i] - 1)) && break; }
            done
            ((left[i] > 0)) || unset "left[i]"
        done
    done
    echo "${hosts#,}"
}

run() {
    (($# > 1)) || misuse "run needs a HOST_SPEC and a program"
    local slots map=slot ranks=0 list='' i mpirun=${FSDP_CLUSTER_MPIRUN:-mpirun}
    parse_spec "$1"
    shift
    while [[ ${1-} == --by-slot || ${1-} == --by-node ]]; do
        map=${1#--by-}
        shift
    done
    for i in "${!slots[@]}"; do
        list+=,$cluster-host$i:${slots[i]}
        ranks=$((ranks + slots[i]))
    done
    # Under another name it calls itself OpenRTE.
    local version launcher
    version=$("$mpirun" --version 2>&1)
    [[ $version =~ Open\ MPI|OpenRTE ]] || fail "'$mpirun' is not Open MPI's mpirun"
    if [[ $version =~ OpenRTE|\)\ [1-4]\. ]]; then
        launcher=(--host "${list#,}" --map-by "$map" --oversubscribe --mca oob_tcp_if_include "$subnet.0/24"
            --mca plm rsh --mca plm_rsh_agent "$script agent" --mca plm_rsh_no_tree_spawn 1)
    else
        # Open MPI 5 by node: on full hosts too with --oversubscribe, and nowhere without it
        launcher=(--host "$(list_hosts "$map")" --map-by seq --prtemca prte_if_include "$subnet.0/24"
            --prtemca plm ssh --prtemca plm_ssh_agent "$script agent" --prtemca plm_ssh_no_tree_spawn 1)
    fi

    # Attached daemons end with mpirun. Ranks wait for each other on shared cores.
    #
    # Socket buffers: a ring of MPI_Sendrecv that allgathers 16 MiB over 4x1 at 1gbit cannot take less than 3/4 of
    # 16 MiB at 125e6 bytes/s, 0.101 s, or 0.105 s with headers. Measured on two cores, with BBR, median and slowest
    # tenth of 30: 0.112 and 0.125 s with the system's buffers, 0.105 and 0.108 s with 128 KiB, 0.106 and 0.111 s with
    # 256 KiB; medians of 4x2 by slot: 0.134, 0.124 and 0.129 s. Small ones keep the links' queues short. At 10gbit:
    # 0.020 s, 0.015 s with 128 KiB. btl_tcp_eager_limit (16 KiB, 256 KiB) made no difference beyond the scatter of the
    # runs; btl_tcp_links 2 and 4 and a progress thread were slower.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    exec "$python" "$here/host.py" enter "$(socket_of "$cluster-host0")" "$mpirun" -n "$ranks" "${launcher[@]}" --bind-to none --leave-session-attached \
        --mca btl_tcp_if_include "$subnet.0/24" \
        --mca btl_tcp_sndbuf 131072 --mca btl_tcp_rcvbuf 131072 \
        --mca pml ob1 --mca btl tcp,vader,self --mca mpi_yield_when_idle 1 "$@"
}

main() {
    case ${1-} in
    up | down | with | enter | run | agent | left | cut | mend | kill)
        require
        trap finish EXIT
        trap 'exit 129' HUP
        trap 'exit 130' INT
        trap 'exit 143' TERM
        [[ $1 != kill ]] || set -- kill_host "${@:2}"
        "$@"
        ;;
    --help | -h) usage ;;
    '') misuse "a subcommand is missing" ;;
    *) misuse "unknown subcommand '$1'" ;;
    esac
}

main "$@"
