#!/usr/bin/env bash
# Runs a job in a control group that allows the time of one core.
#
#   check_cpu_quota.sh MPIEXEC_AND_ITS_ARGUMENTS... PROGRAM ARGUMENTS...
#
# Needs root, and the "cpu" controller of control groups, of version 1 or 2, where groups can be made.
set -euo pipefail

skip() {
    echo "skipped: $1"
    exit 77
}

# The group's folder, below that of the group which this process is in.
make_group() {
    local name=fsdp-test-$$ own
    if [[ -e /sys/fs/cgroup/cpu/cpu.cfs_quota_us || -d /sys/fs/cgroup/cpu ]]; then
        own=$(sed -n 's/^[0-9]*:\(.*,\)\?cpu\(,.*\)\?:\(.*\)$/\3/p' /proc/self/cgroup | head -n 1)
        group=/sys/fs/cgroup/cpu${own%/}/$name
        mkdir "$group" 2>/dev/null || skip "no control group can be made in ${group%/*}"
        echo 100000 >"$group/cpu.cfs_period_us"
        echo 100000 >"$group/cpu.cfs_quota_us"
    else
        own=$(sed -n 's/^0:://p' /proc/self/cgroup)
        group=/sys/fs/cgroup${own%/}/$name
        mkdir "$group" 2>/dev/null || skip "no control group can be made in ${group%/*}"
        [[ -e $group/cpu.max ]] || skip "control groups have no cpu controller here"
        echo "100000 100000" >"$group/cpu.max"
    fi
}

group=''
trap '[[ -z $group ]] || rmdir "$group" 2>/dev/null || true' EXIT
[[ $(id -u) -eq 0 ]] || skip "making a control group takes root"
make_group
status=0
(
    echo "$BASHPID" >"$group/cgroup.procs" 2>/dev/null || exit 77
    exec "$@"
) || status=$?
[[ $status -ne 77 ]] || skip "no process can be put into $group"
exit "$status"
