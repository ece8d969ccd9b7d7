#!/usr/bin/env bash
# Compiles a program of Fortran, and runs check_calls.sh or another script with it.
#
#   check_fortran.sh COMPILER SOURCE MACRO SCRIPT ARGUMENT... --
#
# Exits with 77 if there is no compiler, or none of the MPI that the build is for.
set -euo pipefail

compiler=$1 source=$2 macro=$3
shift 3
command -v "$compiler" >/dev/null || { echo "skipped: there is no compiler '$compiler'"; exit 77; }
# mpif.h has no interfaces: gfortran takes the same call with other types for an error
"$compiler" -fallow-argument-mismatch -w -cpp "-D$macro" -J "$TMPDIR" "$source" -o "$TMPDIR/program"
exec "$@" "$TMPDIR/program"
