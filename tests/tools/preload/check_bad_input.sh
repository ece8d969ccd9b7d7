#!/usr/bin/env bash
# The drop-in where it has no place, and what is wrong with its settings: programs run as without it, and it says so once, on
# stderr.
#
#   check_bad_input.sh LIBRARY ODD COMPILER OTHER_COMPILER OTHER_LAUNCHER LAUNCH...
#
# ODD is the program of odd.c, COMPILER that of MPI, OTHER_* those of the other MPI, and LAUNCH ends where the number of ranks follows.
# USER_OF_LIBRARY is a program that opens a context of libfsdp itself.
set -euo pipefail

library=$1 odd=$2 compiler=$3 other_compiler=$4 other_launcher=$5
shift 5
launch=("$@")
errors="$TMPDIR/errors" output="$TMPDIR/output"
export FSDP_MPI_AFTER=0
export UCX_LOG_LEVEL=error # MPICH's UCX prints, on stdout, that nobody has received a message

fail() {
    cat "$output" "$errors"
    echo "$1"
    exit 1
}

# run RANKS COMMAND...: output and errors go to files
run() {
    local ranks=$1
    shift
    "${launch[@]}" "$ranks" "$@" >"$output" 2>"$errors"
}

# run_pair FIRST SECOND: each of two ranks has a command of its own, without blanks in its words. (The launcher of Open MPI 5.0.7 can
# crash on two commands.)
run_pair() {
    # shellcheck disable=SC2016 # for the shell that each rank begins as
    run 2 bash -c 'if [[ ${OMPI_COMM_WORLD_RANK-${PMI_RANK-}} == 0 ]]; then exec $1; else exec $2; fi' rank "$1" "$2"
}

# prints TEXT: what has been run has printed that, and nothing else
prints() {
    [[ $(<"$output") == "$1" ]] || fail "not printed: $1"
}

# says COUNT TEXT: so many lines of the drop-in have that
says() {
    [[ $(grep -cF -- "$2" "$errors") == "$1" ]] || fail "not said $1 times: $2"
}

silent() {
    ! grep -q "libfsdp_mpi" "$errors" || fail "the drop-in has something to say: $1"
}

two=$'sum 2\nsum 2'

echo "--- a program without MPI, one that is statically linked, and the launcher"
env LD_PRELOAD="$library" echo hello >"$output" 2>"$errors"
prints hello
[[ ! -s $errors ]] || fail "something is said in a program without MPI"
printf '#include <stdio.h>\nint main(void) { return puts("static") < 0; }\n' >"$TMPDIR/static.c"
cc -static "$TMPDIR/static.c" -o "$TMPDIR/static"
LD_PRELOAD="$library" "$TMPDIR/static" >"$output" 2>"$errors"
prints static
[[ ! -s $errors ]] || fail "something is said in a statically linked program"
LD_PRELOAD="$library" "${launch[@]}" 2 "$odd" sum >"$output" 2>"$errors"
prints "$two"
silent "in the launcher"

echo "--- a rank that forks"
run 2 env LD_PRELOAD="$library" "$odd" fork
prints $'sum 2\nchild\nsum 2'
silent "in a child"

echo "--- communicators that are never freed"
run 2 env LD_PRELOAD="$library" FSDP_MPI_CONTEXTS=2 "$odd" gone
prints "$two"$'\nsum 2\nsum 2\nsum 2'
silent "at the end"

echo "--- memory that is freed and allocated again stays with the process"
run 2 env LD_PRELOAD="$library" "$odd" heap
prints "$two"
run 2 env LD_PRELOAD="$library" MALLOC_TRIM_THRESHOLD_=131072 "$odd" heap
grep -q "pages were new" "$output" || fail "MALLOC_TRIM_THRESHOLD_ has no effect"

echo "--- hundreds of communicators with a context each, and thousands with none"
for how in "300 FSDP_MPI_TABLE=all" "2000 FSDP_MPI_TABLE=all FSDP_MPI_CONTEXTS=0" "2000 FSDP_MPI_AFTER=8M"; do
    # shellcheck disable=SC2086 # several settings
    run 2 env LD_PRELOAD="$library" ${how#* } "$odd" brief "${how%% *}"
    prints "$two"
    silent "about communicators"
done

echo "--- a rank that may not read the memory of others, and one that may"
# MPI must not try that either.
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_smsc=^cma UCX_TLS=^cma
reported="env LD_PRELOAD=$library FSDP_MPI_REPORT=$TMPDIR/report $odd"
for ranks in "sum blind" "blind sum"; do
    run_pair "$reported ${ranks% *}" "$reported ${ranks#* }"
    prints "$two"
    silent "without process_vm_readv"
    grep -qE '^allreduce +<4M +2 +2097152 +2 +0 ' "$TMPDIR/report" || fail "sums are not taken without process_vm_readv: $(<"$TMPDIR/report")"
done
unset OMPI_MCA_btl_vader_single_copy_mechanism OMPI_MCA_smsc UCX_TLS

echo "--- one rank without it"
with="env LD_PRELOAD=$library FSDP_TIMEOUT_S=1 $odd sum" without="$odd sum"
run_pair "$with" "$without"
prints "$two"
says 1 "of 2 ranks of MPI_COMM_WORLD 1 run without it, rank 1;"
run_pair "$without" "$with"
prints "$two"
says 1 "rank 0 of MPI_COMM_WORLD runs without it"

echo "--- settings"
run 2 env LD_PRELOAD="$library" FSDP_MPI=off FSDP_MPI_REPORT="$TMPDIR/none" "$odd" sum
prints "$two"
silent "when it is off"
[[ ! -e $TMPDIR/none ]] || fail "a report is written although it is off"
run 2 env LD_PRELOAD="$library" FSDP_MPI_AFTER=much FSDP_MPI_COMPARE=2 FSDP_MPI_REPROT=x FSDP_MPI_TABLE=/nowhere "$odd" sum
prints "$two"
says 1 "FSDP_MPI_AFTER is 'much'; give a number"
says 1 "FSDP_MPI_COMPARE is '2'; give a number from 0 to 1"
says 1 "FSDP_MPI_REPROT is no setting and is ignored; the nearest that is: FSDP_MPI_REPORT"
says 1 "FSDP_MPI_TABLE: /nowhere cannot be opened: No such file or directory; the built-in table is used"
printf '# a comment\n\nallreduce one 1K max\nallreduce two 1K max\n' >"$TMPDIR/table"
run 2 env LD_PRELOAD="$library" FSDP_MPI_TABLE="$TMPDIR/table" FSDP_MPI_REPORT=/nowhere/report "$odd" sum
prints "$two"
says 1 "FSDP_MPI_TABLE: line 4 of $TMPDIR/table has a second word that is none of one, several, fast, slow"
says 1 "FSDP_MPI_REPORT: /nowhere/report cannot be written: No such file or directory"
printf 'allreduce one never # not at all\n' >"$TMPDIR/table"
run 2 env LD_PRELOAD="$library" FSDP_MPI_TABLE="$TMPDIR/table" FSDP_MPI_REPORT="$TMPDIR/report" "$odd" sum
prints "$two"
grep -qE '^allreduce +<4M +2 +2097152 +0 +2 .* size$' "$TMPDIR/report" || fail "a table does not keep calls from being taken: $(<"$TMPDIR/report")"
run 2 env LD_PRELOAD="$library" FSDP_ISA=abacus "$odd" sum
prints "$two"
says 1 "a communicator of 2 ranks stays with MPI: all 2 ranks: FSDP_ISA is 'abacus'"

run 2 env LD_PRELOAD="$library" FSDP_LOG=debug FSDP_MPI_COMPARE=1 FSDP_MPI_REPORT=- FSDP_NONSENSE=1 FSDP_CMA=perhaps "$odd" sum
prints "$two"
says 1 "# libfsdp_mpi "

echo "--- a program that uses the library itself"
run 2 env LD_PRELOAD="$library" FSDP_MPI_REPORT="$TMPDIR/report" "$USER_OF_LIBRARY"
! grep -q "FSDP_MPI_REPORT is no setting" "$errors" || fail "the library does not know the drop-in's settings"
[[ -s $TMPDIR/report ]] || fail "no report is written"

echo "--- MPI_Abort() beside a sum, and a rank that does not come"
! run 2 env LD_PRELOAD="$library" "$odd" abort || fail "an aborted program succeeds"
! run 2 env LD_PRELOAD="$library" FSDP_TIMEOUT_S=1 "$odd" late || fail "a program succeeds although a rank is late"
says 1 "FSDP_TIMEOUT_S=1"
grep -q "^rank 0 hears: libfsdp_mpi: " "$output" || fail "the error handler is not called"

echo "--- a program that has MPI in itself"
archive=$(mpicc.mpich -print-file-name=libmpich.a 2>/dev/null || true)
if [[ -e $archive ]] && command -v mpiexec.mpich >/dev/null; then
    mpicc.mpich "$(dirname "$0")/odd.c" -o "$TMPDIR/inside" -Wl,--as-needed "$archive" -lhwloc -lucp -lucs -lm
    ! ldd "$TMPDIR/inside" | grep -q libmpich || fail "the program does not have MPI in itself"
    mpiexec.mpich -n 2 env LD_PRELOAD="$library" "$TMPDIR/inside" sum >"$output" 2>"$errors"
    prints "$two"
    silent "in a program that has MPI in itself"
else
    echo "left out: there is no libmpich.a"
fi

echo "--- a program of the other MPI"
if command -v "$other_compiler" >/dev/null && command -v "$other_launcher" >/dev/null; then
    "$other_compiler" "$(dirname "$0")/odd.c" -o "$TMPDIR/other"
    "$other_launcher" -n 2 env LD_PRELOAD="$library" "$TMPDIR/other" sum >"$output" 2>"$errors"
    prints "$two"
    says 1 "stands aside, all calls go to MPI: it was built with"
else
    echo "left out: there is no $other_compiler"
fi
