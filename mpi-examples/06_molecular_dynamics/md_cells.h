/**
 * @file
 * Which atoms are near an atom: cells over a rank's atoms and the ghosts around them. All functions are local.
 */
#ifndef MD_CELLS_H
#define MD_CELLS_H

#include <stddef.h>

/** Begins as zeros. */
typedef struct md_cells {
    size_t n; /* atoms */
    const double (*x)[3];
    double reach;
    double low[3], width[3];
    int    count[3];
    int   *first; /* of each cell, and the end, in `atoms` */
    int   *atoms; /* sorted by cell, and in a cell by their numbers */
    int   *cell;  /* of each atom */
    size_t room, cell_room;
} md_cells;

/** A neighbour, and the way to it. */
typedef struct md_neighbor {
    int    atom;
    double r, towards[3]; /* distance; unit vector */
} md_neighbor;

/**
 * Sorts `n` atoms, of which md_cells_near() then finds those nearer than `reach`. `x` stays the caller's and is read again.
 * @return 0; -1: no memory, or a coordinate that is not finite
 */
int md_cells_build(md_cells *cells, size_t n, const double (*x)[3], double reach);

/** The atoms near atom `i`, in an order that depends on the atoms alone. `near` has room for all. @return how many */
size_t md_cells_near(const md_cells *cells, size_t i, md_neighbor *near);

void md_cells_release(md_cells *cells);

#endif
