#!/usr/bin/env bash
# Trains 05_gpu_mlp on the host and on GPUs, and compares the losses of all steps and tests: within 1e-5 of each other.
#
#   check_gpu_mlp.sh "OPTION;...|OPTION;..." PROGRAM MPIEXEC [FLAG]...      behind the |: for GPUs only
set -euo pipefail

IFS=';' read -ra options <<<"${1%%|*}"
IFS=';' read -ra on_gpus <<<"${1#*|}"
program=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# losses FILE: of each step, and of the tests
losses() {
    sed -nE 's/^exact step .* = ([0-9.]+)$/\1/p; s/^epoch .*test loss ([0-9.]+), .*/\1/p' "$1"
}

"$@" "$program" "${options[@]}" --exact --device host >"$folder/host"
"$@" "$program" "${options[@]}" "${on_gpus[@]}" --exact --device gpu >"$folder/gpu"
grep -q '^ranks .*, on gpu' "$folder/gpu"
losses "$folder/host" >"$folder/host.losses"
losses "$folder/gpu" >"$folder/gpu.losses"
expected=10 # 8 steps and 2 tests; pipelines take whole batches alone, and do not test
[[ " ${options[*]} " == *" --pp "* ]] && expected=6
[[ $(wc -l <"$folder/host.losses") -eq $expected ]] || { cat "$folder/host"; echo "not $expected losses"; exit 1; }
paste "$folder/host.losses" "$folder/gpu.losses" | awk '
    NF != 2 || $1 <= 0 || ($1 - $2) ^ 2 > (1e-5 * $1) ^ 2 { print "step or test " NR ": " $0; wrong = 1 }
    END { exit wrong }' || { echo "the losses on GPUs are not those on the host"; exit 1; }
