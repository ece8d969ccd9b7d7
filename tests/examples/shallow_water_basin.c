/* Shallow water on the whole basin, for the twin of 07_shallow_water. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shallow_water_twin.h"

#define DX        1000.0
#define DT        20.0
#define GRAVITY   9.81
#define CORIOLIS  1e-4
#define VISCOSITY 50.0
#define TWO_PI    6.283185307179586

static double hill(double x, double y, double at_x, double at_y)
{
    return exp(-((x - at_x) * (x - at_x) + (y - at_y) * (y - at_y)) / 0.01);
}

basin *basin_open(size_t nx, size_t ny)
{
    basin   *b          = calloc(1, sizeof *b);
    double  *memory     = calloc(11 * nx * ny, sizeof *memory);
    double **fields[11] = {0};

    if (b == NULL || memory == NULL) {
        (void)fprintf(stderr, "no memory for %zu x %zu cells\n", nx, ny);
        exit(EXIT_FAILURE);
    }
    b->nx = nx;
    b->ny = ny;
    memcpy(fields,
           (double **[]){&b->bottom, &b->h, &b->u, &b->v, &b->x, &b->y, &b->stress_x, &b->stress_y, &b->new_h,
                         &b->new_u, &b->new_v},
           sizeof fields);
    for (size_t k = 0; k < 11; k++) {
        *fields[k] = memory + k * nx * ny;
    }
    for (size_t k = 0; k < nx * ny; k++) {
        const size_t column = k % nx, row = k / nx;
        const double x = ((double)column + 0.5) / (double)nx, y = ((double)row + 0.5) / (double)ny;

        b->bottom[k] = 20 + 4 * sin(TWO_PI * x) * cos(TWO_PI * y);
        b->h[k]      = b->bottom[k] + hill(x, y, 0.3, 0.35) - 0.7 * hill(x, y, 0.7, 0.6);
        b->u[k]      = 0.3 * sin(TWO_PI * y);
        b->v[k]      = 0.2 * sin(TWO_PI * x);
    }
    return b;
}

void basin_close(basin *b)
{
    free(b->bottom);
    free(b);
}

/* The neighbours of cell k. */
static size_t east(const basin *b, size_t k)
{
    return basin_at(b, k % b->nx + 1, k / b->nx);
}

static size_t west(const basin *b, size_t k)
{
    return basin_at(b, k % b->nx + b->nx - 1, k / b->nx);
}

static size_t north(const basin *b, size_t k)
{
    return basin_at(b, k % b->nx, k / b->nx + 1);
}

static size_t south(const basin *b, size_t k)
{
    return basin_at(b, k % b->nx, k / b->nx + b->ny - 1);
}

void basin_find_stress(basin *b)
{
    for (size_t k = 0; k < b->nx * b->ny; k++) {
        b->x[k] = 0.5 * (b->u[k] + b->u[east(b, k)]);
        b->y[k] = 0.5 * (b->v[k] + b->v[north(b, k)]);
    }
    for (size_t k = 0; k < b->nx * b->ny; k++) {
        const size_t e = east(b, k), w = west(b, k), n = north(b, k), s = south(b, k);
        const double stretch = (b->x[e] - b->x[w] - b->y[n] + b->y[s]) / (2 * DX);
        const double shear   = (b->x[n] - b->x[s] + b->y[e] - b->y[w]) / (2 * DX);

        column_stress(b->h[k], b->x[k], b->y[k], stretch * stretch + shear * shear, &b->stress_x[k], &b->stress_y[k]);
    }
}

static double head(const basin *b, size_t k)
{
    return GRAVITY * (b->new_h[k] - b->bottom[k]) + 0.5 * (b->x[k] * b->x[k] + b->y[k] * b->y[k]);
}

static double vorticity(const basin *b, size_t k)
{
    return (b->v[k] - b->v[west(b, k)] - b->u[k] + b->u[south(b, k)]) / DX;
}

/* What spreads f from side to side. */
static double spread(const basin *b, const double *f, size_t k)
{
    return VISCOSITY / (DX * DX) * (f[west(b, k)] + f[east(b, k)] + f[south(b, k)] + f[north(b, k)] - 4 * f[k]);
}

static void advance_velocities(basin *b, size_t k)
{
    const size_t  e = east(b, k), w = west(b, k), n = north(b, k), s = south(b, k);
    const double *h = b->h, *u = b->u, *v = b->v, here = vorticity(b, k);
    double        turning = CORIOLIS + 0.5 * (here + vorticity(b, n));
    double        across  = 0.25 * (v[w] + v[k] + v[north(b, w)] + v[n]);
    double        drive   = (2 * WIND_X - b->stress_x[w] - b->stress_x[k]) / (h[w] + h[k]);

    b->new_u[k] = u[k] + DT * (turning * across - (head(b, k) - head(b, w)) / DX + spread(b, u, k) + drive);
    turning     = CORIOLIS + 0.5 * (here + vorticity(b, e));
    across      = 0.25 * (u[s] + u[k] + u[south(b, e)] + u[e]);
    drive       = (2 * WIND_Y - b->stress_y[s] - b->stress_y[k]) / (h[s] + h[k]);
    b->new_v[k] = v[k] + DT * (-turning * across - (head(b, k) - head(b, s)) / DX + spread(b, v, k) + drive);
}

void basin_advance(basin *b)
{
    const size_t  cells = b->nx * b->ny;
    const double *h = b->h, *u = b->u, *v = b->v;

    for (size_t k = 0; k < cells; k++) {
        const size_t e = east(b, k), w = west(b, k), n = north(b, k), s = south(b, k);

        b->new_h[k] =
            h[k] -
            0.5 * DT / DX * (u[e] * (h[k] + h[e]) - u[k] * (h[w] + h[k]) + v[n] * (h[k] + h[n]) - v[k] * (h[s] + h[k]));
    }
    for (size_t k = 0; k < cells; k++) {
        advance_velocities(b, k);
    }
    memcpy(b->h, b->new_h, cells * sizeof(double));
    memcpy(b->u, b->new_u, cells * sizeof(double));
    memcpy(b->v, b->new_v, cells * sizeof(double));
}

static uint64_t turned(double value, size_t by)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return by == 0 ? bits : bits << by | bits >> (64 - by);
}

uint64_t basin_hash(const basin *b)
{
    uint64_t hash = 0;

    for (size_t k = 0; k < b->nx * b->ny; k++) {
        const size_t place = (3 * (k % b->nx + 1) + 19 * ((k / b->nx + 1) % 64)) % 64;

        hash ^= turned(b->h[k], place) ^ turned(b->u[k], (place + 1) % 64) ^ turned(b->v[k], (place + 2) % 64);
    }
    return hash;
}
