/* The closure of 07_shallow_water in C, from the same formulas in the same order. */
#include <math.h>

#include "shallow_water_twin.h"

enum { LEVELS = 32 };

#define KAPPA        0.4
#define ROUGHNESS    0.003
#define C            0.55
#define VISCOSITY    1e-5
#define SHARE        0.5
#define LEAST_SPEED  1e-3
#define LEAST_ENERGY 1e-8
#define TOLERANCE    1e-6

typedef struct column {
    double h, dz, u, v, shear2, drag, friction, slope_x, slope_y;
    double height[LEVELS + 1], length[LEVELS + 1], energy[LEVELS + 1], viscosity[LEVELS + 1];
} column;

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double norm(double x, double y)
{
    return sqrt(x * x + y * y);
}

static void start(column *c)
{
    const double at_rest = ROUGHNESS, half = 0.5 * c->dz;
    const double root  = KAPPA / log((half + at_rest) / at_rest);
    const double speed = norm(c->u, c->v);

    c->drag     = root * root;
    c->friction = c->drag * (speed + LEAST_SPEED);
    for (int k = 0; k <= LEVELS; k++) {
        c->height[k]    = k * c->dz;
        c->length[k]    = KAPPA * (c->height[k] + ROUGHNESS) * sqrt(larger(1 - c->height[k] / c->h, 0.05));
        c->energy[k]    = (0.0025 * speed * speed + norm(WIND_X, WIND_Y)) / (C * C) + LEAST_ENERGY;
        c->viscosity[k] = VISCOSITY + C * c->length[k] * sqrt(c->energy[k]);
    }
}

/* The flow under a force and under a stress at the surface; gives the relative change of friction. */
static double find_velocity(column *c)
{
    double force = c->h / c->friction, surface = 1 / c->friction;
    double mean_force = force, mean_surface = surface, friction, change;

    for (int k = 1; k < LEVELS; k++) {
        force += c->dz * (c->h - c->height[k]) / c->viscosity[k];
        surface += c->dz / c->viscosity[k];
        mean_force += force;
        mean_surface += surface;
    }
    mean_force /= LEVELS;
    mean_surface /= LEVELS;
    c->slope_x = (c->u - WIND_X * mean_surface) / mean_force;
    c->slope_y = (c->v - WIND_Y * mean_surface) / mean_force;
    friction = c->drag * (norm((c->slope_x * c->h + WIND_X) / c->friction, (c->slope_y * c->h + WIND_Y) / c->friction) +
                          LEAST_SPEED);
    change   = fabs(friction - c->friction) / c->friction;
    c->friction = 0.5 * (c->friction + friction);
    return change;
}

/* Production, diffusion and dissipation of turbulent energy; gives its largest relative change. */
static double find_energy(column *c)
{
    double energy[LEVELS + 1], upper[LEVELS] = {0}, change = 0;

    energy[0]      = norm(c->slope_x * c->h + WIND_X, c->slope_y * c->h + WIND_Y) / (C * C) + LEAST_ENERGY;
    energy[LEVELS] = norm(WIND_X, WIND_Y) / (C * C) + LEAST_ENERGY;
    for (int k = 1; k < LEVELS; k++) {
        const double nu    = c->viscosity[k];
        const double x     = (c->slope_x * (c->h - c->height[k]) + WIND_X) / nu;
        const double y     = (c->slope_y * (c->h - c->height[k]) + WIND_Y) / nu;
        const double below = 0.5 * (c->viscosity[k - 1] + nu) / (c->dz * c->dz);
        const double above = 0.5 * (nu + c->viscosity[k + 1]) / (c->dz * c->dz);
        const double all   = below + above + C * C * C * sqrt(c->energy[k]) / c->length[k] - below * upper[k - 1];

        upper[k]  = above / all;
        energy[k] = (nu * (x * x + y * y + c->shear2) + below * energy[k - 1]) / all;
    }
    for (int k = LEVELS - 1; k > 0; k--) {
        energy[k] = larger(energy[k] + upper[k] * energy[k + 1], LEAST_ENERGY);
    }
    for (int k = 0; k <= LEVELS; k++) {
        change          = larger(change, fabs(energy[k] - c->energy[k]) / (energy[k] + c->energy[k]));
        c->energy[k]    = 0.5 * (c->energy[k] + energy[k]);
        c->viscosity[k] = VISCOSITY + C * c->length[k] * sqrt(c->energy[k]);
    }
    return change;
}

void column_stress(double h, double u, double v, double shear2, double *stress_x, double *stress_y)
{
    column c = {.h = h, .dz = h / LEVELS, .u = u, .v = v, .shear2 = SHARE * shear2};

    start(&c);
    for (int i = 0; i < 200; i++) {
        const double change = find_velocity(&c);

        if (larger(change, find_energy(&c)) <= TOLERANCE) {
            break;
        }
    }
    *stress_x = c.slope_x * h + WIND_X;
    *stress_y = c.slope_y * h + WIND_Y;
}
