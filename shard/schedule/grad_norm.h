/**
 * @file
 * Gradients as they are clipped and scaled.
 */
#ifndef FSDPI_GRAD_NORM_H
#define FSDPI_GRAD_NORM_H

#include "shard/state/model.h"

/** Scales all gradients that this rank holds to a norm of at most `max_norm`, where theirs is finite. */
void fsdpi_clip_to(fsdp_model *model, double max_norm, double norm);

/** Multiplies all gradients that this rank holds. */
void fsdpi_scale_gradients(fsdp_model *model, double factor);

#endif
