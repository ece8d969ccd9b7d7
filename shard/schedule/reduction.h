/**
 * @file
 * Gradient views and their reduction.
 */
#ifndef FSDPI_REDUCTION_H
#define FSDPI_REDUCTION_H

#include "shard/state/model.h"

/** Provides a zeroed gradient view. */
fsdp_status fsdpi_gradient_open(fsdp_unit *unit);

/** Issues the reduction of the gradient view, or adds it up on this rank. A `status` that is not FSDP_OK goes to all ranks. */
fsdp_status fsdpi_gradient_close(fsdp_unit *unit, fsdp_status status);

/**
 * Completes all reductions, after which flat->gradient holds the sum. Collective where gradients wait for others. An error is
 * one of the step; FSDP_ERR_STATE for `function` where it has failed before.
 */
fsdp_status fsdpi_gradients_settle(fsdp_model *model, const char *function);

/** Waits for what has been issued and begins nothing: the gradients are of no use any more. Local. The first error counts. */
fsdp_status fsdpi_gradients_abandon(fsdp_model *model);

/** Forgets them; of one flat parameter; and what tells ranks apart whose units come in another order. */
void fsdpi_gradients_forget(fsdp_model *model);
void fsdpi_gradient_forget(fsdpi_flat *flat);
void fsdpi_order_forget(fsdp_model *model);

#endif
