#!/usr/bin/env bash
# The links have the rate that they were given, in both directions. On a cluster of four hosts at 1gbit that is up:
#
#   check_rate.sh PROBE
set -euo pipefail

cluster=$(dirname "${BASH_SOURCE[0]}")/cluster.sh
probe=$1

# limited NAMESPACE COUNT
limited() {
    local found
    found=$(tc -n "$1" qdisc show | grep -c '^qdisc tbf .* rate 1Gbit ') || true
    [[ $found == "$2" ]] || {
        echo "FAILED: in $1 there are $found devices of 1 Gbit/s, not $2"
        exit 1
    }
}

for host in 0 1 2 3; do
    limited "$FSDP_CLUSTER_ID-host$host" 1
done
limited "$FSDP_CLUSTER_ID-switch" 4

# How often the token buckets had to hold something back.
held_back() {
    tc -n "$FSDP_CLUSTER_ID-switch" -s qdisc show | sed -nE 's/.* overlimits ([0-9]+) .*/\1/p' | awk '{ n += $1 } END { print n + 0 }'
}

# 3/4 of 16 MiB leave each host: at 125e6 bytes/s, less the bucket of 128 KiB that goes at once. How much longer it takes says how
# busy this machine is; that it was the links that were waited for, the buckets know.
before=$(held_back)
"$cluster" run 4x1 "$probe" ring 16777216 </dev/null | tee /dev/stderr | awk '
    /^ring 16777216 bytes / { if (n++ == 0 || $4 < best) best = $4 }
    END {
        bound = (0.75 * 16777216 - 131072) / 125e6
        printf "%.4f s at best, at least %.4f s expected\n", best, bound
        exit !(n == 5 && best >= bound)
    }'
after=$(held_back)
echo "the links held something back $((after - before)) times"
((after > before)) || {
    echo "FAILED: no link was ever at its limit"
    exit 1
}
