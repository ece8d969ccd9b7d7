/**
 * @file
 * What a model needs, counted before anything is allocated.
 */
#ifndef FSDPI_PLAN_H
#define FSDPI_PLAN_H

#include "shard/state/model.h"

/** Counts what a model needs under a strategy on `size` ranks. FSDP_ERR_ARG, recorded, where that cannot be. */
fsdp_status fsdpi_plan_make(const fsdp_model *model, fsdp_strategy strategy, int size, fsdpi_plan *plan);

#endif
