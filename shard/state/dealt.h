/**
 * @file
 * Whole tensors of a model (FSDP_GRANULARITY_TENSOR), dealt to the ranks that share a copy of it.
 */
#ifndef FSDPI_DEALT_H
#define FSDPI_DEALT_H

#include <stddef.h>

#include "shard/state/model.h"

/**
 * Adds to the plan what a rank holds of them, where not every rank holds them all. FSDP_ERR_MEMORY, recorded.
 * @param[in] rank  of those that share a copy, plan->group many; FSDPI_LARGEST_RANK: the one that holds most; FSDPI_MEAN_RANK
 */
fsdp_status fsdpi_plan_dealt(const fsdp_model *model, int rank, fsdpi_plan *plan);

/** Sets fsdpi_tensor.dealt of each, on the ranks that there are. FSDP_ERR_MEMORY, recorded. */
fsdp_status fsdpi_deal_model(fsdp_model *model);

/**
 * The longest whole tensor of a rank that shares a copy, of the one that holds most, or of those on this node, as words behind a sentence: "; rank 3 has
 * whole tensor 'h.0.weight' of 400 elements". Empty where there is none, or no memory to find it.
 */
void fsdpi_describe_dealt(const fsdp_model *model, const fsdpi_plan *plan, int rank, char *text, size_t size);

#endif
