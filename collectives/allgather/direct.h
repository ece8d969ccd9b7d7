/**
 * @file
 * Allgather by direct exchange: every rank sends its part to every other rank, straight to its final place.
 *
 * Steps: 1. Cost for S bytes in all on N ranks: alpha + (N-1)/N S beta per rank; memory traffic 2 (N-1)/N S and MPI's own.
 */
#ifndef FSDPI_ALLGATHER_DIRECT_H
#define FSDPI_ALLGATHER_DIRECT_H

#include "lib/queue.h"

extern const fsdpi_algorithm fsdpi_allgather_direct;

/** Exchanges the parts that already lie in their slots of `call.out`: also the second half of other collectives. */
fsdp_status fsdpi_allgather_direct_exchange(fsdp_request *request);

#endif
