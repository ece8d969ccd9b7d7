# shellcheck shell=bash disable=SC2154
# For scripts that hold runs of 03_gpt against each other. They set program, data, mpiexec, numproc and the array flags.

# shellcheck source=tests/examples/exact_lines.sh
. "$(dirname "${BASH_SOURCE[0]}")/exact_lines.sh"

steps=20
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# train FILE RANKS OPTION...: leaves the exact lines of a run in FILE
train() {
    local file=$1 ranks=$2
    shift 2
    "$mpiexec" "$numproc" "$ranks" "${flags[@]}" "$program" --data "$data" --steps $steps --val-batches 1 --sample 0 \
        --exact "$@" >"$folder/all" </dev/null
    keep_exact "$ranks ranks, $*" $steps "$folder/all" "$file"
    if ! grep -q '^exact validation loss 0x[0-9.a-f]*p[+-][0-9]* = [0-9.]\{14\}$' "$file"; then
        echo "$ranks ranks, $*: no validation loss to the last bit"
        exit 1
    fi
}
