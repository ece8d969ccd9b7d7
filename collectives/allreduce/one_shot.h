/**
 * @file
 * Allreduce in one step: every rank sends its whole vector to every other rank and reduces all of them itself, in rank
 * order. For vectors so short that the number of steps decides.
 *
 * Steps: 1. Cost for S bytes on N ranks: alpha + (N-1) S beta; memory traffic (N+1) S by the kernel.
 */
#ifndef FSDPI_ALLREDUCE_ONE_SHOT_H
#define FSDPI_ALLREDUCE_ONE_SHOT_H

#include "lib/queue.h"

extern const fsdpi_algorithm fsdpi_allreduce_one_shot;

/** Whether all vectors fit into the staging memory. */
bool fsdpi_allreduce_one_shot_fits(const fsdp_context *ctx, size_t count, fsdp_dtype dtype);

#endif
