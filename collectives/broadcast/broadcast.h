/** @file The algorithms of broadcast beyond those through blocks. */
#ifndef FSDPI_BROADCAST_H
#define FSDPI_BROADCAST_H

#include "lib/queue.h"

extern const fsdpi_algorithm fsdpi_broadcast_direct;
extern const fsdpi_algorithm fsdpi_broadcast_device;
extern const fsdpi_algorithm fsdpi_broadcast_cma;
extern const fsdpi_algorithm fsdpi_broadcast_mpi;
extern const fsdpi_algorithm fsdpi_broadcast_ring_device;

#endif
