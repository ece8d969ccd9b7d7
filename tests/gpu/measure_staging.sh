#!/usr/bin/env bash
# Measures collectives on GPU memory between two hosts, on the double of the HIP runtime with a copy engine of 5 GB/s, over
# a link of so many Mbit/s: what they reach of the slower of the two. Fails below LEAST of it.
#
#   measure_staging.sh PROGRAM [MBIT] [MIB] [LEAST]     PROGRAM: measure_staging, as it was built; defaults: 200 16 0.90
#
# A figure says something on a machine that is idle otherwise. Exits with 77 where tests/cluster/cluster.sh does.
set -euo pipefail

program=$(realpath "$1") mbit=${2:-200} mib=${3:-16} least=${4:-0.90}
cluster=$(dirname "${BASH_SOURCE[0]}")/../cluster/cluster.sh

export HIP_DOUBLE_COPY_GBPS=5 HIP_DOUBLE_DELAY_US=0 FSDP_DEVICE=gpu FSDP_BIND=none
unset OMPI_MCA_btl OMPI_MCA_pml
"$cluster" with --hosts 2 --rate "${mbit}mbit" -- \
    "$cluster" run 2x1 "$program" "$mib" "$((mbit * 125000))" 5000000000 "$least"
