/** @file The algorithms of reduce_scatter beyond those through blocks; reduce has them too. */
#ifndef FSDPI_REDUCE_SCATTER_H
#define FSDPI_REDUCE_SCATTER_H

#include "lib/queue.h"

extern const fsdpi_algorithm fsdpi_reduce_scatter_direct;
extern const fsdpi_algorithm fsdpi_reduce_scatter_device;
extern const fsdpi_algorithm fsdpi_reduce_scatter_cma;
extern const fsdpi_algorithm fsdpi_reduce_scatter_rails;
extern const fsdpi_algorithm fsdpi_reduce_scatter_rails_device;

#endif
