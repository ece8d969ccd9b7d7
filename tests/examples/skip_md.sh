#!/usr/bin/env bash
# Where 06_molecular_dynamics is not built: skips, and says why.
echo "skipped: 06_molecular_dynamics is not built: it needs LAMMPS, built with the same MPI (Debian's liblammps-dev), and no sanitizers"
exit 77
