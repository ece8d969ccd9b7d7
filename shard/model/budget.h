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

#endif
