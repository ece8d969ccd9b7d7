/**
 * @file
 * Whether GPUs have the memory that a model will take.
 */
#ifndef FSDPI_DEVICE_MEMORY_H
#define FSDPI_DEVICE_MEMORY_H

#include "fsdp/model.h"

/** FSDP_ERR_MEMORY, on all ranks, where a GPU has less than the ranks that use it will take. Collective. */
fsdp_status fsdpi_device_memory_check(fsdp_model *model);

#endif
