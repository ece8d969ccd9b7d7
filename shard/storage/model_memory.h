/**
 * @file
 * Memory of one rank for a model: on the host, on the model's GPU, or on the host where the GPU can reach it.
 */
#ifndef FSDPI_MODEL_MEMORY_H
#define FSDPI_MODEL_MEMORY_H

#include <stddef.h>

#include "shard/state/model.h"

typedef enum fsdpi_home { FSDPI_AT_HOST, FSDPI_AT_DEVICE, FSDPI_AT_PINNED } fsdpi_home;

/** Where the elements of a model are; of masters and optimizer state where those are. */
fsdpi_home fsdpi_home_of_elements(const fsdp_model *model);
fsdpi_home fsdpi_home_of_state(const fsdp_model *model);

/**
 * Zeroed memory, aligned to FSDPI_ALIGNMENT and counted; on a GPU zeroed for what comes into the model's stream.
 * @return NULL where there is none, recorded and printed; or, without that, where `bytes` is 0
 */
void *fsdpi_home_alloc(fsdp_model *model, fsdpi_home home, fsdp_memory_kind kind, size_t bytes);

/** Releases what fsdpi_home_alloc() gave, with the same arguments; on a GPU waits until that is idle. NULL does nothing. */
void fsdpi_home_free(fsdp_model *model, fsdpi_home home, fsdp_memory_kind kind, void *memory, size_t bytes);

#endif
