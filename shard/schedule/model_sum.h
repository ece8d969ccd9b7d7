/**
 * @file
 * Sums over a whole model: what each rank has to contribute of the elements that it holds, added up on all ranks.
 */
#ifndef FSDPI_MODEL_SUM_H
#define FSDPI_MODEL_SUM_H

#include <stdbool.h>

#include "collectives/collectives.h"
#include "shard/state/model.h"

/** Whether ranks have to be asked: not where each holds all. */
bool fsdpi_model_is_spread(const fsdp_model *model);

/**
 * An allreduce over the ranks that share one copy; of a model on a mesh, over all that have parts of it. It tells them of a `status`
 * that is not FSDP_OK, and does not agree on more. Collective, where fsdpi_model_is_spread().
 */
fsdp_status fsdpi_model_reduce(fsdp_model *model, const char *function, const char *label, fsdp_status status,
                               void *data, size_t count, fsdp_dtype dtype, fsdp_redop op);

/**
 * The same, for what is called between passes: not where the step has failed, and with an agreement of all ranks of the model's context
 * where the reduction is not one. Collective.
 * @param[in] status  this rank's verdict
 */
fsdp_status fsdpi_model_sum(fsdp_model *model, const char *function, const char *label, fsdp_status status, bool forced,
                            void *data, size_t count, fsdp_dtype dtype, fsdp_redop op);

#endif
