/** @file Lowered schedules of any kind, and what becomes of them by chance: the same on all ranks that draw from the same number. */
#ifndef FSDP_TESTS_SPOILED_H
#define FSDP_TESTS_SPOILED_H

#include <stdint.h>

#include "shard/pipeline/schedule.h"

/** Below n. */
size_t draw(uint64_t *chance, size_t n);

/** A good one; to be closed. */
fsdpi_schedule any_schedule(uint64_t *chance, int ranks);

/** Drops an action, doubles one, or swaps two of a rank. */
void spoil(uint64_t *chance, fsdpi_schedule *schedule);

#endif
