#!/bin/sh
# The losses of 08_two_stages on 2 ranks, and on 4 with four stages, are those of one rank, bit by bit, by every schedule.
#
#   check_two_stages.sh PROGRAM MPIEXEC NUMPROC_FLAG -- [FLAG...]
set -eu

program=$1 mpiexec=$2 number=$3
shift 4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# losses RANKS STAGES SCHEDULE: of the second training
losses() {
    timeout "$((60 * ${TEST_TIME_FACTOR:-1}))" "$mpiexec" "$number" "$1" $flags "$program" --exact --width 24 --micro 4 --steps 4 \
        --stages "$2" --schedule "$3" > "$folder/out" || { cat "$folder/out"; exit 1; }
    grep '^loss ' "$folder/out" | tail -n 4 > "$folder/losses.$1.$3"
    test "$(wc -l < "$folder/losses.$1.$3")" -eq 4
}

flags=$*
losses 1 2 1f1b
for schedule in gpipe 1f1b zb-h1; do
    losses 2 2 $schedule
    cmp "$folder/losses.1.1f1b" "$folder/losses.2.$schedule"
done
losses 4 4 1f1b
cmp "$folder/losses.1.1f1b" "$folder/losses.4.1f1b"
echo "the losses of 1, 2 and 4 ranks are the same"
