#!/usr/bin/env bash
# Programs of Debian that nobody here has written, and one of ours, with the drop-in and without: the answers must be equal.
# Prints the table of docs/drop-in.md.
#
#   programs.sh LIBRARY [--only NAME] LAUNCH...
#
# LAUNCH starts a program on the ranks wanted, as `mpirun --oversubscribe -n 2` or `mpiexec.mpich -n 2` does. Each program runs
# three times: without; with everything taken that can be; and as a user has it, by the built-in table. Both of the latter
# compare. A program that is not installed, is one of another MPI, or fails without the drop-in is left out and named; with
# --only, the status is then 77.
# All of them are in these packages, which libfsdp itself does not need:
#
#   apt-get install hpcc quantum-espresso quantum-espresso-data cp2k cp2k-data lammps nwchem-openmpi nwchem-mpich nwchem-data
set -euo pipefail

readonly everyone=(hpcc pw.x cp2k lammps nwchem ensemble)
here=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
export UCX_LOG_LEVEL=error # MPICH's UCX prints, on stdout, that nobody has received a message

# ---- what each program is, what it is given, and what its answer is ---------------------------------------------------------

# Sets `command`, and `settings` of the MPI; writes the input into the folder that the program runs in.
prepare_hpcc() {
    command=(hpcc)
    zcat -f /usr/share/doc/hpcc/examples/_hpccinf.txt* |
        sed -e 's/^1000 /400 /' -e 's/^2            Ps/1            Ps/' >hpccinf.txt
}

answer_hpcc() {
    grep -E '^(Success|PTRANS_residual|MPIRandomAccess(_LCG)?_Errors|MPIFFT_maxErr)=|^\|\|Ax-b|^ +[0-9]+ tests completed' hpccoutf.txt
}

prepare_pw.x() {
    command=(pw.x -in silicon.in)
    cat >silicon.in <<'END'
&control
  calculation = 'scf', prefix = 'silicon', outdir = '.', pseudo_dir = '/usr/share/espresso/pseudo'
/
&system
  ibrav = 2, celldm(1) = 10.2, nat = 2, ntyp = 1, ecutwfc = 30.0
/
&electrons
  conv_thr = 1.0d-10
/
ATOMIC_SPECIES
 Si 28.086 Si.pz-vbc.UPF
ATOMIC_POSITIONS alat
 Si 0.00 0.00 0.00
 Si 0.25 0.25 0.25
K_POINTS automatic
 4 4 4 1 1 1
END
}

answer_pw.x() {
    grep '^!' output
}

prepare_cp2k() {
    command=(cp2k H2O.inp)
    zcat -f /usr/share/doc/cp2k/examples/H2O.inp* >H2O.inp
}

# The fifth of five steps; the digits that do not depend on the order of sums.
answer_cp2k() {
    sed -nE 's/.*Total FORCE_EVAL.*(-[0-9]+[.][0-9]{8})[0-9]*$/energy \1/p' output
}

prepare_lammps() {
    command=(lmp -in melt.in -log none)
    cat >melt.in <<'END'
units lj
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 50
run 250
END
}

answer_lammps() {
    sed -n '/^Step/,/^Loop/{/^Loop/!p}' output
}

# Under MPICH it computes nonsense on ranks that share a node, with or without the drop-in; so each gets a node of its own.
prepare_nwchem() {
    command=("nwchem.$mpi" water.nw)
    settings=(MPIR_CVAR_NOLOCAL=1)
    cat >water.nw <<'END'
start water
geometry units angstrom noautosym
  O  0.0  0.0   0.1
  H  0.0  0.76 -0.48
  H  0.0 -0.76 -0.48
end
basis
  * library 6-31g*
end
dft
  xc b3lyp
  direct
end
task dft energy
END
}

# It deals out its work as ranks ask for it, so that the last digits differ from run to run.
answer_nwchem() {
    sed -nE 's/.*Total DFT energy = +(-[0-9]+[.][0-9]{7})[0-9]*$/energy \1/p' output
}

prepare_ensemble() {
    command=(./ensemble)
    command -v "$fortran" >/dev/null || return 1
    "$fortran" -O2 -w -cpp -DUSE_F08 "$here/ensemble.F90" -o ensemble
}

answer_ensemble() {
    grep '^energy' output
}

# ---- runs ---------------------------------------------------------------------------------------------------------------------

# Sets `why` where a program cannot run here, and prepares its input.
can_run() {
    local linked
    why='' settings=()
    "prepare_$1" 2>errors || why="its input cannot be prepared: $(tail -n 1 errors)"
    if ! command -v "${command[0]}" >/dev/null; then
        why="it is not installed"
    elif [[ -z $why ]]; then
        linked=$(ldd "$(command -v "${command[0]}")")
        [[ $linked == *"$mpi_library"* ]] || why="it is not linked with $mpi_library"
    fi
    [[ -z $why ]]
}

# run FILE COMMAND...: the answer goes to a file
run() {
    local file=$1
    shift
    rm -f output hpccoutf.txt
    if ! timeout 600 env "${settings[@]}" "${launch[@]}" "$@" >output 2>errors </dev/null || ! "answer_$name" >"$file"; then
        tail -n 20 output errors
        echo "$name fails or has no answer: $*" >&2
        return 1
    fi
}

# column NUMBER FILE: its sum over all lines of a report
column() {
    awk -v column="$1" '!/^#/ { sum += $column } END { print sum + 0 }' "$2"
}

# As the report says it: more time is a loss.
gain() {
    sed -nE 's/^# by the medians, .* s (less|more) than MPI .*: ([0-9.]+)% of the run$/\1 \2/p' "$1" |
        sed -e 's/less /+/' -e 's/more /-/' -e 's/$/%/'
}

seconds() {
    sed -nE 's/^# .* ranks, ([0-9.]+) s from .*/\1/p' "$1"
}

# compare REPORT TABLE...: the answer with the drop-in, which must be the same
compare() {
    local report=$1
    shift
    run with env LD_PRELOAD="$library" FSDP_MPI_COMPARE=1 FSDP_MPI_REPORT="$PWD/$report" "$@" "${command[@]}" || return 1
    ! grep 'libfsdp_mpi:' errors || return 1
    diff without with
}

# A line of the table; 1 if the answers differ.
check_program() {
    local equal=yes
    if ! run without "${command[@]}"; then
        echo "$name is left out: it fails without the drop-in" >&2
        return 77
    fi
    compare all FSDP_MPI_TABLE=all FSDP_MPI_AFTER=0 >differs && compare default FSDP_MPI=on >>differs || equal='**no**'
    if [[ ! -s all || ! -s default ]]; then
        cat differs
        return 1
    fi
    printf '| %s | %s | %s | %s | %s | %s | %s | %s |\n' "$name" "$equal" "$(seconds all)" "$(column 3 all)" \
        "$(column 5 all)" "$(gain all)" "$(column 5 default)" "$(gain default)"
    if [[ -n ${VERBOSE-} ]]; then
        cat all default >&2
    fi
    [[ $equal == yes ]] || { cat differs; return 1; }
}

# Sets `mpi` to the name that Debian gives it, `mpi_library` to what its programs are linked with, and `fortran`.
find_mpi() {
    if "${launch[0]}" --version 2>&1 | grep -qiE 'open ?-?(mpi|rte)|prrte'; then
        mpi=openmpi mpi_library=libmpi.so
    else
        mpi=mpich mpi_library=libmpich.so
    fi
    fortran=mpifort.$mpi
}

main() {
    local only='' failed=0 ran=0 status
    (($# > 1)) || { sed -n '2,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
    library=$(realpath "$1")
    shift
    if [[ $1 == --only ]]; then
        only=$2
        shift 2
    fi
    launch=("$@")
    find_mpi
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT

    printf '| program (%s) | answers equal | seconds | calls | taken, all sizes | gain | taken, built-in table | gain |\n' "$mpi"
    echo '| --- | --- | --- | --- | --- | --- | --- | --- |'
    for name in "${everyone[@]}"; do
        [[ -z $only || $only == "$name" ]] || continue
        mkdir "$folder/$name"
        cd "$folder/$name"
        if can_run "$name"; then
            status=0
            check_program || status=$?
            ((status == 77)) || ran=1
            ((status == 0 || status == 77)) || failed=1
        else
            echo "$name is left out: $why" >&2
        fi
    done
    ((failed == 0)) || exit 1
    ((ran == 1)) || exit 77
}

main "$@"
