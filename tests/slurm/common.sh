# shellcheck shell=bash disable=SC2034,SC2154
# Sourced by the checks that run under `slurm.sh with`, on a cluster of five hosts: four nodes and the head.
#
#   head COMMAND...   runs a command on the head, where users log in
#   node NUMBER       the name of a node
#   adapt, until_so   see below

# shellcheck source=tests/support/check.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/check.sh"

slurm_tests=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
cluster=$slurm_tests/../cluster/cluster.sh

# CTest's own choices for Open MPI are for one machine.
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,vader,self OMPI_MCA_btl_tcp_if_include=10.77.0.0/24 OMPI_MCA_oob_tcp_if_include=10.77.0.0/24
unset OMPI_MCA_rmaps_base_oversubscribe PRTE_MCA_rmaps_default_mapping_policy

head() {
    "$cluster" enter 4 "$@" </dev/null
}

node() {
    echo "$FSDP_CLUSTER_ID-host$1"
}

# adapt SCRIPT NAME=VALUE...: a batch script of docs/slurm with other values, and `program` with `options` in place of its own.
# Nodes have two cores, and the tests do not have all day.
adapt() {
    local script=$1 setting words
    shift
    words=$(printf '%q ' "$program" "${options[@]}")
    setting="s|^program=.*|program=($words)|; s|^\(#SBATCH --time=\).*|\1${minutes:-30}|; s|@600|@${notice:-60}|"
    while (($# > 0)); do
        grep -q "^${1%%=*}=" "$script" || fail "$script does not set ${1%%=*}"
        setting+="; s|^${1%%=*}=[^ ]*|$1|"
        shift
    done
    [[ $(grep -Ec '^program=|@600$|^#SBATCH --time=' "$script") == 3 ]] || fail "$script is not understood"
    sed "$setting" "$script"
}

# until_so WHAT COMMAND...: waits for it to be so, however long it takes, within what a test may take
until_so() {
    local what=$1 end=$((SECONDS + 180 * ${TEST_TIME_FACTOR:-1}))
    shift
    until "$@"; do
        if ((SECONDS >= end)); then
            cat ./*.log
            head sh -c 'squeue; sinfo --Node' || true
            tail -n 30 "${SLURM_CONF%/*}/slurmctld.log"
            fail "$what: not within $((180 * ${TEST_TIME_FACTOR:-1})) s"
        fi
        sleep 0.2
    done
}
