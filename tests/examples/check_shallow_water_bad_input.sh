#!/usr/bin/env bash
# 07_shallow_water and the program with MPI alone refuse bad input: with status 1, one message that names the value and the remedy,
# and nothing computed.
#
#   check_shallow_water_bad_input.sh RANKS PROGRAM PLAIN MPIEXEC NUMPROC_FLAG [MPIEXEC_FLAG]...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"

ranks=$1 program=$2 plain=$3
launch=("$4" "$5" "$1" "${@:6}")

# refuses REGEX PROGRAM OPTION...
refuses() {
    local expected=$1 status=0
    shift
    timeout "$((120 * ${TEST_TIME_FACTOR:-1}))" "${launch[@]}" "$@" >"$folder/out" 2>"$folder/err" </dev/null || status=$?
    ((status == 1)) || fail "'${*:2}': status $status"
    (($(grep -c '^07_shallow_water\(_plain\)\?: ' "$folder/err") == 1)) || fail "'${*:2}': not one message"
    grep -Eq -- "^${1##*/}: $expected" "$folder/err" || fail "'${*:2}': no message that matches '$expected'"
    ! grep -q '^step' "$folder/out" || fail "'${*:2}': something was computed"
    grep "^${1##*/}: " "$folder/err"
}

for each in "$program" "$plain"; do
    refuses "--nx is '12x'; give a whole number from 8 to 30000" "$each" --nx 12x
    refuses "option '--widht' is unknown; --help lists the options" "$each" --widht 3
done
refuses "--steps is '-1'; give a whole number from 0 to " "$program" --steps=-1
refuses "--lr is 'nan'; give a number from " "$program" --lr nan
refuses "--lr is '2'; give a number from " "$program" --lr 2
refuses "--batch is ''; give a whole number from 1 to " "$program" --batch ''
refuses "--width needs a value; --help lists the options" "$program" --steps 1 --width
refuses "option 'hello' is unknown; --help lists the options" "$program" hello
refuses "option '--exact=1' takes no value; --help lists the options" "$program" --exact=1
refuses "option '--checkpoint' is unknown" "$plain" --checkpoint "$folder/run"
refuses "--checkpoint is empty; " "$program" --checkpoint ''
refuses "--strategy is 'half'; use one of full_shard .*no_shard" "$program" --strategy half
refuses "--checkpoint saves a surrogate, but --updates is 0; give 1 or more" "$program" --updates 0 --checkpoint "$folder/run"
((ranks < 5)) || refuses "--nx is 8 and --ny 9: too few cells for 1 x 5 ranks; give at least 2 and 10" "$program" --nx 8 --ny 9

# What the library finds, it says itself, once.
touch "$folder/file"
status=0
"${launch[@]}" "$program" --steps 1 --checkpoint "$folder/file" >"$folder/out" 2>"$folder/err" </dev/null || status=$?
((status == 1)) || fail "a file where the folder should be: status $status"
(($(grep -c "^libfsdp: error: .*$folder/file" "$folder/err") == 1)) || fail "a file where the folder should be: not one message"
echo "$ranks ranks: refused alike"
