/**
 * @file
 * The ranks that share one copy of a model, and those that hold the same part of other copies.
 */
#ifndef FSDPI_GROUPS_H
#define FSDPI_GROUPS_H

#include "shard/state/model.h"
#include "shard/state/slices.h"

/** FSDP_ERR_ARG where the ranks cannot be divided as the options say. */
fsdp_status fsdpi_groups_check(fsdp_context *ctx, const fsdp_model_options *options);

/** Sets model->shards and model->replicas. Collective; the same status on all ranks. */
fsdp_status fsdpi_groups_open(fsdp_model *model);
void        fsdpi_groups_close(fsdp_model *model);

/** The slices that any rank holds of a flat parameter that is divided. */
fsdpi_held fsdpi_slices_of_rank(const fsdp_model *model, int rank);

/** A rank that holds such a slice. */
int fsdpi_holder_of_slice(const fsdp_model *model, int slice);

#endif
