/**
 * @file
 * What means over the ranks are multiplied by for the sake of a gradient divisor.
 */
#ifndef FSDPI_FACTOR_H
#define FSDPI_FACTOR_H

#include "shard/state/model.h"

/** From means over the ranks to sums over a divisor; 1 where there is none. */
static inline double fsdpi_factor_for(const fsdp_model *model, double divisor)
{
    return divisor > 0.0 ? (double)model->ctx->size / divisor : 1.0;
}

/** Of what a pass adds to a gradient: to one that has the step's divisor already, according to that. */
static inline double fsdpi_factor_of_pass(const fsdpi_flat *flat)
{
    const fsdp_model *model = flat->model;

    return fsdpi_factor_for(model, flat->divided ? model->step_divisor : model->options.gradient_divisor);
}

#endif
