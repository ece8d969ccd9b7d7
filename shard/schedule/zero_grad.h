/**
 * @file
 * How all ranks come together again, behind a step that has failed or another.
 */
#ifndef FSDPI_ZERO_GRAD_H
#define FSDPI_ZERO_GRAD_H

#include "shard/state/model.h"

/** Completes or gives up what is under way, before the model is destroyed. */
void fsdpi_step_end(fsdp_model *model);

#endif
