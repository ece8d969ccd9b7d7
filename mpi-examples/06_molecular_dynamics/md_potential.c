#include "md_potential.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- radial functions -------------------------------------------------------------------------------------------- */

/* Gaussians whose width is the distance between their middles. */
#define FIRST_MIDDLE 0.8
#define SPACING      0.1

/* All functions at a distance, and their slopes there. Each follows from the one before by two products: of exponentials two
 * are left. The factor that ends them at the cutoff has two continuous derivatives there. */
static inline void functions_at(double r, double value[MD_FUNCTIONS], double slope[MD_FUNCTIONS])
{
    const double inside = 1 - r * r / (MD_CUTOFF * MD_CUTOFF), fade = inside * inside * inside;
    const double fading = -6 * r / (MD_CUTOFF * MD_CUTOFF) * inside * inside, last = exp(-1.0);
    double       u = (r - FIRST_MIDDLE) / SPACING, gauss = exp(-0.5 * u * u), ratio = exp(u - 0.5);
    int          m;

    for (m = 0; m < MD_FUNCTIONS; m++) {
        value[m] = gauss * fade;
        slope[m] = gauss * (fading - (u - m) / SPACING * fade);
        gauss *= ratio;
        ratio *= last;
    }
}

void md_describe(const md_neighbor *near, size_t n, double seen[MD_FUNCTIONS])
{
    double value[MD_FUNCTIONS], slope[MD_FUNCTIONS];
    size_t k;
    int    m;

    memset(seen, 0, MD_FUNCTIONS * sizeof *seen);
    for (k = 0; k < n; k++) {
        functions_at(near[k].r, value, slope);
        for (m = 0; m < MD_FUNCTIONS; m++) {
            seen[m] += value[m];
        }
    }
}

/* ---- network ----------------------------------------------------------------------------------------------------- */

#define TENSOR(name, member, inputs, outputs, deviation)                                                               \
    {                                                                                                                  \
        name, offsetof(md_weights, member) / sizeof(double), sizeof((md_weights *)0)->member / sizeof(double),         \
            {inputs, outputs}, deviation                                                                               \
    }

md_tensor md_tensor_of(size_t i)
{
    static const md_tensor tensors[MD_N_TENSORS] = {
        TENSOR("layer1.weight", w1, MD_FUNCTIONS, MD_HIDDEN, 0.25), /* 1 / sqrt(inputs) */
        TENSOR("layer1.bias", b1, MD_HIDDEN, 0, 0),
        TENSOR("layer2.weight", w2, MD_HIDDEN, MD_HIDDEN, 0.177),
        TENSOR("layer2.bias", b2, MD_HIDDEN, 0, 0),
        TENSOR("energy.weight", w3, MD_HIDDEN, 0, 0.177),
        TENSOR("energy.bias", b3, 1, 0, 0),
    };

    return tensors[i];
}

typedef struct activations {
    double in[MD_FUNCTIONS], first[MD_HIDDEN], second[MD_HIDDEN];
} activations;

static void layer(const double *in, size_t inputs, const double (*w)[MD_HIDDEN], const double *bias, double *out)
{
    size_t i, o;

    memcpy(out, bias, MD_HIDDEN * sizeof *out);
    for (i = 0; i < inputs; i++) {
        for (o = 0; o < MD_HIDDEN; o++) {
            out[o] += in[i] * w[i][o];
        }
    }
    for (o = 0; o < MD_HIDDEN; o++) {
        out[o] = tanh(out[o]);
    }
}

/* The energy in units of its deviation, from its mean. */
static double forward(const md_potential *p, const double *seen, activations *a)
{
    const md_weights *w      = &p->weights;
    double            energy = w->b3[0];
    size_t            i;

    for (i = 0; i < MD_FUNCTIONS; i++) {
        a->in[i] = (seen[i] - p->normal.mean[i]) / p->normal.deviation[i];
    }
    layer(a->in, MD_FUNCTIONS, w->w1, w->b1, a->first);
    layer(a->first, MD_HIDDEN, w->w2, w->b2, a->second);
    for (i = 0; i < MD_HIDDEN; i++) {
        energy += a->second[i] * w->w3[i];
    }
    return energy;
}

/* From derivatives by a layer's results, those by what tanh was applied to, and by what went into the layer. */
static void layer_backward(const double *result, const double (*w)[MD_HIDDEN], size_t inputs, double *d_out,
                           double *d_in)
{
    size_t i, o;

    for (o = 0; o < MD_HIDDEN; o++) {
        d_out[o] *= 1 - result[o] * result[o];
    }
    for (i = 0; i < inputs; i++) {
        double sum = 0;

        for (o = 0; o < MD_HIDDEN; o++) {
            sum += d_out[o] * w[i][o];
        }
        d_in[i] = sum;
    }
}

double md_energy(const md_potential *p, const double seen[MD_FUNCTIONS], double *gradient)
{
    activations  a;
    const double energy = p->normal.energy_mean + p->normal.energy_deviation * forward(p, seen, &a);
    double       second[MD_HIDDEN], first[MD_HIDDEN];
    size_t       i;

    if (gradient) {
        memcpy(second, p->weights.w3, sizeof second);
        layer_backward(a.second, p->weights.w2, MD_HIDDEN, second, first);
        layer_backward(a.first, p->weights.w1, MD_FUNCTIONS, first, gradient);
        for (i = 0; i < MD_FUNCTIONS; i++) {
            gradient[i] *= p->normal.energy_deviation / p->normal.deviation[i];
        }
    }
    return energy;
}

/* Adds the outer product. */
static void add_products(const double *in, size_t inputs, const double *out, double (*sum)[MD_HIDDEN], double *bias)
{
    size_t i, o;

    for (i = 0; i < inputs; i++) {
        for (o = 0; o < MD_HIDDEN; o++) {
            sum[i][o] += in[i] * out[o];
        }
    }
    for (o = 0; o < MD_HIDDEN; o++) {
        bias[o] += out[o];
    }
}

double md_learn(const md_potential *p, const double seen[MD_FUNCTIONS], double energy, md_weights *gradient)
{
    activations  a;
    const double error = forward(p, seen, &a) - (energy - p->normal.energy_mean) / p->normal.energy_deviation;
    double       second[MD_HIDDEN], first[MD_HIDDEN], in[MD_FUNCTIONS];
    size_t       i;

    for (i = 0; i < MD_HIDDEN; i++) {
        gradient->w3[i] += error * a.second[i];
        second[i] = error * p->weights.w3[i];
    }
    gradient->b3[0] += error;
    layer_backward(a.second, p->weights.w2, MD_HIDDEN, second, first);
    add_products(a.first, MD_HIDDEN, second, gradient->w2, gradient->b2);
    layer_backward(a.first, p->weights.w1, MD_FUNCTIONS, first, in);
    add_products(a.in, MD_FUNCTIONS, first, gradient->w1, gradient->b1);
    return error;
}

/* ---- atoms ------------------------------------------------------------------------------------------------------- */

static int make_room(md_workspace *w, size_t n)
{
    if (n > w->room) {
        free(w->near);
        free(w->slope);
        free(w->shell);
        w->near  = malloc(n * sizeof *w->near);
        w->slope = malloc(n * sizeof *w->slope);
        w->shell = malloc(n);
        w->room  = w->near && w->slope && w->shell ? n : 0;
    }
    return n <= w->room;
}

static int prepare(md_workspace *w, size_t n, const double (*x)[3])
{
    return make_room(w, n) ? md_cells_build(&w->cells, n, x, MD_CUTOFF) : -1;
}

int md_describe_atoms(md_workspace *w, size_t own, size_t n, const double (*x)[3], double (*seen)[MD_FUNCTIONS])
{
    size_t i;

    if (prepare(w, n, x) != 0) {
        return -1;
    }
    for (i = 0; i < own; i++) {
        md_describe(w->near, md_cells_near(&w->cells, i, w->near), seen[i]);
    }
    return 0;
}

/* What the energy of atom `i` does to the atoms of this rank. @return that energy */
static double add_forces(md_workspace *w, const md_potential *p, size_t i, size_t own, double (*force)[3])
{
    const size_t n                  = md_cells_near(&w->cells, i, w->near);
    double       seen[MD_FUNCTIONS] = {0}, value[MD_FUNCTIONS], gradient[MD_FUNCTIONS], energy;
    size_t       k;
    int          m, d;

    for (k = 0; k < n; k++) {
        functions_at(w->near[k].r, value, w->slope[k]);
        for (m = 0; m < MD_FUNCTIONS; m++) {
            seen[m] += value[m];
        }
    }
    energy = md_energy(p, seen, gradient);
    for (k = 0; k < n; k++) {
        const size_t j    = (size_t)w->near[k].atom;
        double       pull = 0;

        for (m = 0; m < MD_FUNCTIONS; m++) {
            pull += gradient[m] * w->slope[k][m];
        }
        for (d = 0; d < 3; d++) {
            if (i < own) {
                force[i][d] += pull * w->near[k].towards[d];
            }
            if (j < own) {
                force[j][d] -= pull * w->near[k].towards[d];
            }
        }
        w->shell[j] |= i < own;
    }
    return energy;
}

int md_forces(md_workspace *w, const md_potential *p, size_t own, size_t n, const double (*x)[3], double (*force)[3],
              double *energy)
{
    size_t i;

    *energy = 0;
    if (prepare(w, n, x) != 0) {
        return -1;
    }
    if (n > 0) {
        memset(w->shell, 0, n);
    }
    if (own) {
        memset(force, 0, own * sizeof *force);
    }
    for (i = 0; i < own; i++) {
        *energy += add_forces(w, p, i, own, force);
    }
    for (i = own; i < n; i++) {
        if (w->shell[i]) {
            (void)add_forces(w, p, i, own, force);
        }
    }
    return 0;
}

int md_force_errors(md_workspace *w, const md_potential *p, size_t own, size_t n, const double (*x)[3],
                    const double (*given)[3], double sums[2])
{
    double(*force)[3] = malloc((own + 1) * sizeof *force), energy;
    const int failed  = !force || md_forces(w, p, own, n, x, force, &energy) != 0;
    size_t    i;
    int       d;

    for (i = 0; i < own && !failed; i++) {
        for (d = 0; d < 3; d++) {
            sums[0] += (force[i][d] - given[i][d]) * (force[i][d] - given[i][d]);
            sums[1] += given[i][d] * given[i][d];
        }
    }
    free(force);
    return failed ? -1 : 0;
}

void md_workspace_release(md_workspace *w)
{
    md_cells_release(&w->cells);
    free(w->near);
    free(w->slope);
    free(w->shell);
}
