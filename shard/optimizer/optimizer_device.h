/**
 * @file
 * What the step of an optimizer takes on a GPU.
 */
#ifndef FSDPI_OPTIMIZER_DEVICE_H
#define FSDPI_OPTIMIZER_DEVICE_H

#include <stddef.h>

#include "shard/state/model.h"

/** BYTES through which an optimizer of a model works; on the host 0. */
size_t fsdpi_optimizer_staging(const fsdp_model *model, const fsdpi_plan *plan, const fsdp_model_group *assumed);

#endif
