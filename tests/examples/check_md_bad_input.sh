#!/usr/bin/env bash
# 06_molecular_dynamics refuses bad input: with a status of its own, and one message that names the value and the remedy. What LAMMPS itself
# refuses is said by its own message.
#
#   check_md_bad_input.sh RANKS PROGRAM MPIEXEC NUMPROC_FLAG [MPIEXEC_FLAG]...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"

ranks=$1 program=$2 mpiexec=$3 numproc=$4
shift 4
flags=("$@")
short=(--cells 4 --equilibrate 20 --frames 4 --updates 2 --batches 2 --warmup 2 --test-frames 0 --drive 0)

# run OPTION...: leaves what it prints in out and err; its status
run() {
    timeout "$((120 * ${TEST_TIME_FACTOR:-1}))" "$mpiexec" "$numproc" "$ranks" ${flags[@]+"${flags[@]}"} "$program" "${short[@]}" "$@" \
        >"$folder/out" 2>"$folder/err" </dev/null
}

# refuses REGEX OPTION...: REGEX must match its one message
refuses() {
    local expected=$1 status=0
    shift
    run "$@" || status=$?
    ((status > 0 && status < 124)) || fail "'$*': status $status"
    (($(grep -c '^06_molecular_dynamics: ' "$folder/err") == 1)) || fail "'$*': not one message"
    grep -E -- "^06_molecular_dynamics: $expected" "$folder/err" || fail "'$*': no message that matches '$expected'"
}

refuses "--interval is '0'; give a whole number from 1 to" --interval 0
refuses "--frames is '0'; give a whole number from 1" --frames 0
refuses "--updates is '-1'; give a whole number from 1" --updates -1
refuses "--batches is '0'; give a whole number from 1" --batches 0
refuses "--batches is 300, and --cells 4 are 256 atoms; use fewer" --batches 300
refuses "--cells is '2'; give a whole number from 3" --cells 2
refuses "--density is '7'; give a number from 0.5 to" --density 7
refuses "--timestep is 'nan'; give a number from" --timestep nan
refuses "--temperature is '-1'; give a number" --temperature -1
refuses "--mode is 'fast'; use one of both, md, train, dump" --mode fast
refuses "--mode md is there to be timed and saves nothing; leave --checkpoint out" --mode md --checkpoint "$folder/c"
refuses "option '--colour' is unknown; --help" --colour
refuses "argument 'more' belongs to no option; --help" more

ranks=8 refuses "--cells 3 are 108 atoms, fewer than 16 for each of 8 ranks; use more cells, or at most 6 ranks" --cells 3

refuses "LAMMPS: ERROR.* (Lost atoms|Non-numeric).*; use a smaller --timestep" --timestep 0.5
refuses "LAMMPS: ERROR.* dump file .*; give --dump-file a place that can be written" --mode dump --dump-file "$folder/missing/dump"
refuses "the loss of frame [1-4] is not finite; use an --lr below 100" --lr 100 --warmup 0 --weight-decay 10 --updates 100

run --checkpoint "$folder/run" || fail "a run that saves"
refuses "the checkpoint .* is of another training; use the same options" --checkpoint "$folder/run" --cells 3
grep -q '^now  *108 atoms, ' "$folder/err" || fail "what differs is not said"
