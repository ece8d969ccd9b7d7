/**
 * @file
 * From caches to a checkpoint: what was found on the nodes is written into the run's folder, as the ranks that had it would have
 * written it, and becomes the latest. So any number of ranks can load it, as any checkpoint.
 */
#ifndef FSDPI_RECOVER_H
#define FSDPI_RECOVER_H

#include "shard/checkpoint/cache/find.h"
#include "shard/checkpoint/write/checkpoint.h"

/** Writes a state that was found. Collective; for `function`, the public one that asks. FSDP_ERR_IO, FSDP_ERR_MEMORY. */
fsdp_status fsdpi_recover(fsdp_checkpoint *checkpoint, const fsdpi_cache_found *found, const char *function);

#endif
