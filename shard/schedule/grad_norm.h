/**
 * @file
 * Gradients as they are clipped and scaled.
 */
#ifndef FSDPI_GRAD_NORM_H
#define FSDPI_GRAD_NORM_H

#include "shard/state/model.h"

/** Multiplies all gradients that this rank holds. */
void fsdpi_scale_gradients(fsdp_model *model, double factor);

#endif
