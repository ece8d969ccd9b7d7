/**
 * @file
 * Barrier by MPI's own nonblocking barrier. Where ranks agree on operations anyway, the agreement has been the barrier.
 */
#ifndef FSDPI_BARRIER_MPI_H
#define FSDPI_BARRIER_MPI_H

#include "lib/queue.h"

extern const fsdpi_algorithm fsdpi_barrier_mpi;

#endif
