/**
 * @file
 * Broadcast by MPI's own nonblocking broadcast, whose algorithm and cost are the MPI library's.
 */
#ifndef FSDPI_BROADCAST_MPI_H
#define FSDPI_BROADCAST_MPI_H

#include "lib/queue.h"

extern const fsdpi_algorithm fsdpi_broadcast_mpi;

#endif
