/**
 * @file
 * The whole basin of 07_shallow_water on one process: fields of nx x ny cells, row by row, periodic.
 */
#ifndef SHALLOW_WATER_TWIN_H
#define SHALLOW_WATER_TWIN_H

#include <stddef.h>
#include <stdint.h>

/** Depths in the middle of cells, velocities on western (u) and southern (v) faces and in the middle (x, y). */
typedef struct basin {
    size_t  nx, ny;
    double *bottom, *h, *u, *v, *x, *y, *stress_x, *stress_y, *new_h, *new_u, *new_v;
} basin;

/** The place of a cell; counts begin again behind nx and ny. */
static inline size_t basin_at(const basin *b, size_t column, size_t row)
{
    return row % b->ny * b->nx + column % b->nx;
}

basin *basin_open(size_t nx, size_t ny);
void   basin_close(basin *b);

/** Velocities in the middle, and the stress at the bottom of every cell. */
void basin_find_stress(basin *b);

/** One time step with that stress. */
void basin_advance(basin *b);

/** As 07_shallow_water's. */
uint64_t basin_hash(const basin *b);

/** What the bottom takes from a column of water of depth `h`: the closure, in shallow_water_column.c. */
void column_stress(double h, double u, double v, double shear2, double *stress_x, double *stress_y);

#define WIND_X 1.5e-4
#define WIND_Y 5e-5

#endif
