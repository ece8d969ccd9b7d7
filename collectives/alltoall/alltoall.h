/** @file The algorithms of alltoall beyond those through blocks, and the files that they are in. */
#ifndef FSDPI_ALLTOALL_H
#define FSDPI_ALLTOALL_H

#include "lib/progress/queue.h"

extern const fsdpi_algorithm fsdpi_alltoall_direct;          /* direct.c */
extern const fsdpi_algorithm fsdpi_alltoall_cma;             /* direct.c: the same, through process_vm_readv() */
extern const fsdpi_algorithm fsdpi_alltoall_pairwise;        /* pairwise.c */
extern const fsdpi_algorithm fsdpi_alltoall_device;          /* device.c */
extern const fsdpi_algorithm fsdpi_alltoall_pairwise_device; /* pairwise_device.c */

/** For fsdpi_collective::prepare: the copy of the input that pairwise needs in place; on GPUs the memory for it. */
fsdp_status fsdpi_alltoall_prepare(fsdp_request *request);

#endif
