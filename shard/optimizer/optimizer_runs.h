/**
 * @file
 * Runs of elements that have one learning rate and one weight decay.
 */
#ifndef FSDPI_OPTIMIZER_RUNS_H
#define FSDPI_OPTIMIZER_RUNS_H

#include <stddef.h>

#include "shard/optimizer/optimizer_state.h"

/** Of a run of elements in the present step. */
typedef struct fsdpi_coefficients {
    fsdpi_adam       adam;
    fsdpi_lion       lion;
    fsdpi_sgd        sgd;
    fsdpi_update_f64 wide; /* of masters in f64 */
} fsdpi_coefficients;

/** Works on `count` elements from number `begin` on of what this rank holds of a flat parameter. */
typedef void fsdpi_run_update(const void *what, size_t begin, size_t count, const fsdpi_coefficients *c);

/** Calls `update` for the elements from `begin` up to `end`, in their order, in runs that have one set of coefficients. */
void fsdpi_optimizer_runs(const fsdp_optimizer *optimizer, fsdpi_flat *flat, const fsdpi_flat_state *state,
                          size_t begin, size_t end, fsdpi_run_update *update, const void *what);

#endif
