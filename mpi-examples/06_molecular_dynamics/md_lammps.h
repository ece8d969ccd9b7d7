/**
 * @file
 * The simulation: a liquid of Lennard-Jones atoms in LAMMPS, which knows nothing of training. Units are those of the potential
 * (LAMMPS's `lj`). Functions are collective unless they say otherwise; those that
 * may fail return 0, or -1 when LAMMPS has failed.
 *
 * LAMMPS as Debian 12 builds it ends the program on an error; builds with exceptions return. Either way the message goes to
 * standard error, behind the program's name. What else LAMMPS says is not printed.
 */
#ifndef MD_LAMMPS_H
#define MD_LAMMPS_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

typedef struct md_system {
    size_t cells; /* of the lattice that the liquid begins as, per edge of the box */
    size_t seed;  /* of velocities */
    double density, temperature, timestep;
} md_system;

/** Atoms of all ranks. */
size_t md_system_atoms(const md_system *system);

/** The length of an edge of the box. */
double md_system_edge(const md_system *system);

/** Whose forces move the atoms: those of Lennard and Jones, or those of a callback of the fix "learned". */
typedef enum md_forces_of { MD_REFERENCE, MD_LEARNED } md_forces_of;

/** Opens LAMMPS with an empty box. @param[out] lammps  NULL after a failure; or else to be closed with md_lammps_close() */
int md_lammps_open(MPI_Comm comm, const md_system *system, md_forces_of forces, void **lammps);

/** A command for a LAMMPS opened with MD_REFERENCE: from the next run on, ghosts reach as far as a potential of its own would need. */
extern const char md_lammps_far_ghosts[];

/** Fills the box with a lattice whose atoms begin to move, alike on any number of ranks. @param[in] scratch  memory for 7 per atom */
int md_lammps_melt(void *lammps, const md_system *system, double *scratch);

/**
 * Puts these atoms into the box in place of those there are, so that what follows depends on nothing else. All ranks give all
 * `n` atoms, in the order of their tags, which are 1 to n.
 * @param[in] scratch  memory for 2 n
 * @param[in] step     the number of the time step
 */
int md_lammps_seat(void *lammps, size_t n, const double *x, const double *v, int *scratch, uint64_t step);

/** Energy and temperature at the end of a run. */
typedef struct md_thermo {
    double energy; /* per atom, potential and kinetic */
    double temperature;
} md_thermo;

int md_lammps_thermo(void *lammps, size_t atoms, md_thermo *thermo);

/** A hash of all bits of x and v of all atoms, in the order of tags. @param[in] all  memory for 3 `atoms` */
int md_lammps_hash(void *lammps, size_t atoms, double *all, uint64_t *hash);

/** Of the library, as LAMMPS counts: a date. Local. */
int md_lammps_version(void *lammps);

/** Closes what md_lammps_open() has opened. NULL does nothing. */
void md_lammps_close(void *lammps);

/** Runs one command, or several lines of them, of printf()'s form. */
int md_lammps_command(void *lammps, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
