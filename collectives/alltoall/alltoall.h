/** @file The algorithms of alltoall beyond those through blocks. */
#ifndef FSDPI_ALLTOALL_H
#define FSDPI_ALLTOALL_H

#include "lib/queue.h"

extern const fsdpi_algorithm fsdpi_alltoall_direct;
extern const fsdpi_algorithm fsdpi_alltoall_device;
extern const fsdpi_algorithm fsdpi_alltoall_cma;
extern const fsdpi_algorithm fsdpi_alltoall_pairwise;
extern const fsdpi_algorithm fsdpi_alltoall_pairwise_device;

/** For fsdpi_collective::prepare: the copy of the input that pairwise needs in place; on GPUs that of input and output. */
fsdp_status fsdpi_alltoall_prepare(fsdp_request *request);

#endif
