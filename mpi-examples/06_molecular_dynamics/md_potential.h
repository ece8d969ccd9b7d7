/**
 * @file
 * A potential as Behler and Parrinello (2007) make one: an atom's energy is a small network of radial functions of its
 * neighbours' distances, and forces are the derivatives of the sum. Knows neither MPI nor LAMMPS. All functions are local.
 */
#ifndef MD_POTENTIAL_H
#define MD_POTENTIAL_H

#include "md_cells.h"

enum {
    MD_FUNCTIONS = 16, /* Gaussians of the distance, summed over the neighbours: what the network sees of an atom */
    MD_HIDDEN    = 32  /* units in each of its two layers */
};

#define MD_CUTOFF 2.5 /* distance from which on atoms do not see each other */

/** What is learned. Matrices are [inputs][outputs]. */
typedef struct md_weights {
    double w1[MD_FUNCTIONS][MD_HIDDEN], b1[MD_HIDDEN];
    double w2[MD_HIDDEN][MD_HIDDEN], b2[MD_HIDDEN];
    double w3[MD_HIDDEN], b3[1];
} md_weights;

/** The tensors of md_weights, in its order. */
enum { MD_N_TENSORS = 6 };

typedef struct md_tensor {
    const char *name;
    size_t      offset, elements; /* in md_weights, as doubles */
    size_t      shape[2];         /* the second 0: a vector */
    double      deviation;        /* of initial values; 0: they are 0 */
} md_tensor;

md_tensor md_tensor_of(size_t i);

/** Brings what the network sees, and says, to about mean 0 and deviation 1. */
typedef struct md_normal {
    double mean[MD_FUNCTIONS], deviation[MD_FUNCTIONS];
    double energy_mean, energy_deviation;
} md_normal;

typedef struct md_potential {
    md_weights weights;
    md_normal  normal;
} md_potential;

/** What the network sees of an atom with these neighbours. */
void md_describe(const md_neighbor *near, size_t n, double seen[MD_FUNCTIONS]);

/** The energy of an atom. @param[out] gradient  its derivatives by `seen`; NULL: not wanted */
double md_energy(const md_potential *p, const double seen[MD_FUNCTIONS], double *gradient);

/**
 * Adds the gradient of half the square of the error, in units of the deviation of energies, that the energy of an atom has.
 * @return that error
 */
double md_learn(const md_potential *p, const double seen[MD_FUNCTIONS], double energy, md_weights *gradient);

/** Memory for what follows. Begins as zeros. */
typedef struct md_workspace {
    md_cells     cells;
    md_neighbor *near;
    double (*slope)[MD_FUNCTIONS]; /* of each neighbour's functions, by its distance */
    char  *shell;                  /* whether a ghost is near an atom of this rank's */
    size_t room;
} md_workspace;

/**
 * What the network sees of the first `own` of `n` atoms, around which the others reach MD_CUTOFF at least.
 * @return 0; -1: no memory, or a coordinate that is not finite
 */
int md_describe_atoms(md_workspace *w, size_t own, size_t n, const double (*x)[3], double (*seen)[MD_FUNCTIONS]);

/**
 * Energy of, and forces on, the first `own` of `n` atoms. Energies of ghosts act on them too, so that ghosts have to reach twice
 * MD_CUTOFF around them.
 * @param[out] force  of `own` atoms
 * @return as above
 */
int md_forces(md_workspace *w, const md_potential *p, size_t own, size_t n, const double (*x)[3], double (*force)[3],
              double *energy);

/**
 * Adds the squares of the differences between these forces and those given, and the squares of the latter.
 * @return as above
 */
int md_force_errors(md_workspace *w, const md_potential *p, size_t own, size_t n, const double (*x)[3],
                    const double (*given)[3], double sums[2]);

void md_workspace_release(md_workspace *w);

#endif
