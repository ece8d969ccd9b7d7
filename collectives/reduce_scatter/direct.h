/**
 * @file
 * Reduce-scatter by direct exchange: every rank sends each other rank the slice that belongs to it, and reduces its own
 * from all ranks' contributions with one kernel, in rank order. Goes through the staging memory piece by piece.
 *
 * Steps: ceil(S/N / piece), with a piece of staging_bytes / (N-1). Cost for S bytes in all on N ranks: alpha per step +
 * (N-1)/N S beta; memory traffic S + S/N by the kernel, 2 (N-1)/N S and MPI's own by the messages.
 *
 * With the division FSDPI_DIVISION_ROOT the same is a reduce to one rank; with FSDPI_DIVISION_SPLIT the first half of an
 * allreduce.
 */
#ifndef FSDPI_REDUCE_SCATTER_DIRECT_H
#define FSDPI_REDUCE_SCATTER_DIRECT_H

#include <stddef.h>

#include "lib/queue.h"

extern const fsdpi_algorithm fsdpi_reduce_scatter_direct;

/** The three steps, for algorithms that begin with a reduce-scatter. The first sets `rounds`. */
fsdp_status fsdpi_reduce_scatter_direct_prepare(fsdp_request *request);
fsdp_status fsdpi_reduce_scatter_direct_post(fsdp_request *request, size_t round);

/** @param[out] slice  where this rank's slice of the result goes, from its beginning; may be where its input lies */
void fsdpi_reduce_scatter_direct_finish(fsdp_request *request, size_t round, void *slice);

#endif
