/**
 * @file
 * Optimizers of a model.
 */
#ifndef FSDPI_OPTIMIZER_H
#define FSDPI_OPTIMIZER_H

#include <stddef.h>

#include "fsdp/optimizer.h"
#include "shard/state/model.h"

/** BYTES of bookkeeping of one optimizer of a model. */
size_t fsdpi_optimizer_bookkeeping(const fsdpi_plan *plan);

/** The model that an optimizer was made for. */
const fsdp_model *fsdpi_optimizer_model(const fsdp_optimizer *optimizer);

/** How many optimizers a model has. */
size_t fsdpi_count_optimizers(const fsdp_model *model);

/** Forgets the gradients that a step uses up: those of the optimizer, and those that no optimizer of the model uses. */
void fsdpi_optimizer_forget_gradients(const fsdp_optimizer *optimizer);

/** Releases the optimizers of a model. */
void fsdpi_optimizers_release(fsdp_model *model);

#endif
