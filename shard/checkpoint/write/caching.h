/**
 * @file
 * What an open checkpoint does with caches: see shard/checkpoint/cache/cache.h.
 */
#ifndef FSDPI_CACHING_H
#define FSDPI_CACHING_H

#include "shard/checkpoint/write/checkpoint.h"

/**
 * Makes what an earlier attempt has left in the caches the latest checkpoint, where it is newer, and opens caches for this one. With
 * caching off does nothing. Collective; for `function`, the public one that asks.
 */
fsdp_status fsdpi_caching_open(fsdp_checkpoint *checkpoint, const char *function);

/** Reserves room for all that the checkpoint has now. Collective. */
fsdp_status fsdpi_caching_reserve(fsdp_checkpoint *checkpoint, const char *function);

#endif
