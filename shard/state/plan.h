/**
 * @file
 * What a model needs, counted before anything is allocated.
 */
#ifndef FSDPI_PLAN_H
#define FSDPI_PLAN_H

#include "shard/state/dealt.h"
#include "shard/state/model.h"

/**
 * Counts what a model needs under a strategy on `size` ranks. FSDP_ERR_ARG, recorded, where that cannot be.
 * @param[in] rank  which of those that share a copy it is for, where whole tensors make them differ; FSDPI_LARGEST_RANK,
 *                  FSDPI_MEAN_RANK: see shard/state/dealt.h
 */
fsdp_status fsdpi_plan_make(const fsdp_model *model, fsdp_strategy strategy, int size, int rank, fsdpi_plan *plan);

#endif
