/** @file The algorithms of allgather beyond those through blocks. */
#ifndef FSDPI_ALLGATHER_H
#define FSDPI_ALLGATHER_H

#include "lib/queue.h"

extern const fsdpi_algorithm fsdpi_allgather_direct;
extern const fsdpi_algorithm fsdpi_allgather_device;
extern const fsdpi_algorithm fsdpi_allgather_cma;
extern const fsdpi_algorithm fsdpi_allgather_rails;
extern const fsdpi_algorithm fsdpi_allgather_rails_device;
extern const fsdpi_algorithm fsdpi_allgather_ring;
extern const fsdpi_algorithm fsdpi_allgather_ring_device;

#endif
