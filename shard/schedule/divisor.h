/**
 * @file
 * What sums of gradients are divided by. A pass takes means over the ranks, times what the model's options ask for. A divisor that
 * is set for one step comes behind all of its passes, where gradients are first looked at: so it may be set until then.
 */
#ifndef FSDPI_DIVISOR_H
#define FSDPI_DIVISOR_H

#include <stdbool.h>

#include "shard/state/model.h"

/** Whether there are gradients that the divisor of the step has not been applied to. */
bool fsdpi_has_undivided(const fsdp_model *model);

/**
 * Applies it where it has not been. Collective where fsdpi_has_undivided(), and then a `status` that is not FSDP_OK goes to all
 * ranks; otherwise it is returned as it is.
 */
fsdp_status fsdpi_gradients_divide(fsdp_model *model, const char *function, fsdp_status status);

/**
 * The same in front of what all ranks do next. Of a model on a mesh its own ranks are asked in any case, and an error goes on to those
 * of other parts.
 * @return false: all ranks have been told of `status`, which is to be returned at once
 */
bool fsdpi_gradients_divide_first(fsdp_model *model, const char *function, fsdp_status *status);

#endif
