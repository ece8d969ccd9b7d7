/**
 * @file
 * What a budget consists of.
 */
#ifndef FSDPI_BUDGET_H
#define FSDPI_BUDGET_H

#include <stddef.h>

#include "fsdp/model.h"

/** BYTES on this rank's GPU of the contexts of a model. */
size_t fsdpi_contexts_device_bytes(const fsdp_model *model, fsdp_strategy strategy, int size);

/** What this rank itself will hold, which fsdp_model_budget() says of the rank that holds most. Fails as that does. */
fsdp_status fsdpi_budget_of_rank(const fsdp_model *model, fsdp_budget *budget);

#endif
