/**
 * @file
 * L-BFGS: what it holds, its vectors over shards, and searches along a direction.
 */
#ifndef FSDPI_LBFGS_H
#define FSDPI_LBFGS_H

#include <stdbool.h>
#include <stddef.h>

#include "fsdp/lbfgs.h"
#include "shard/state/model.h"

/**
 * Vectors, each as long as what the rank holds of the trainable flat parameters. Those of the history come behind: see
 * fsdpi_lbfgs_change() and fsdpi_lbfgs_gradient_change(). Two are not held here, but where the model has them.
 */
enum {
    FSDPI_LBFGS_START,  /* the masters before the call */
    FSDPI_LBFGS_ORIGIN, /* where the present iteration begins */
    FSDPI_LBFGS_SLOPE,  /* the gradient there */
    FSDPI_LBFGS_DIRECTION,
    FSDPI_LBFGS_OWN, /* how many these are */
    FSDPI_LBFGS_MASTER   = -1,
    FSDPI_LBFGS_GRADIENT = -2
};

struct fsdp_lbfgs {
    fsdp_model        *model;
    fsdp_lbfgs_options options;
    size_t             elements; /* of one vector */
    size_t             pairs;    /* in the history */
    size_t             oldest;   /* its place */
    void              *vectors;  /* in the model's master_dtype; NULL where elements is 0 */
    /* of one call */
    fsdp_lbfgs_closure closure;
    void              *state;
    size_t             evaluations;
    double             curvatures[]; /* 1 / (y . s) of each pair, then as many factors of the recursion */
};

/** Of a line: how far along, the loss there, and its derivative along the direction. */
typedef struct fsdpi_lbfgs_point {
    double t, loss, slope;
} fsdpi_lbfgs_point;

/** The vector of the history's place `i`. */
static inline int fsdpi_lbfgs_change(size_t i)
{
    return FSDPI_LBFGS_OWN + 2 * (int)i;
}

static inline int fsdpi_lbfgs_gradient_change(size_t i)
{
    return FSDPI_LBFGS_OWN + 2 * (int)i + 1;
}

/** ELEMENTS of one vector in a model. */
size_t fsdpi_lbfgs_elements(const fsdp_model *model);

/** out = b + a x, rounded once in f64 and once to its type. Vectors may be the same. Local. */
void fsdpi_lbfgs_combine(fsdp_lbfgs *lbfgs, int out, double a, int x, int b);
/** out = a x. */
void fsdpi_lbfgs_scale(fsdp_lbfgs *lbfgs, int out, double a, int x);
void fsdpi_lbfgs_copy(fsdp_lbfgs *lbfgs, int out, int x);

/** The products of `n` pairs of vectors, at most 3, rounded once. Collective. */
fsdp_status fsdpi_lbfgs_dots(fsdp_lbfgs *lbfgs, size_t n, const int (*vectors)[2], double *products);

/** Masters are now others: what has been gathered is of no use. Collective. */
fsdp_status fsdpi_lbfgs_moved(fsdp_lbfgs *lbfgs);

/** Runs the closure for the masters as they are; gradients are there afterwards, and of all trainable flat parameters. Collective. */
fsdp_status fsdpi_lbfgs_evaluate(fsdp_lbfgs *lbfgs, double *loss);

/**
 * Searches from `origin`, whose t is 0 and whose slope is negative, along the direction.
 * @param[in]  first  how far along it tries first
 * @param[out] found  whose masters and gradients the model has then; its t is 0, and masters are the origin's, where none was found
 */
fsdp_status fsdpi_lbfgs_search(fsdp_lbfgs *lbfgs, const fsdpi_lbfgs_point *origin, double first,
                               fsdpi_lbfgs_point *found);

#endif
