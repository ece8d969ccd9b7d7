/** @file The algorithms of allreduce beyond those that all collectives have. */
#ifndef FSDPI_ALLREDUCE_H
#define FSDPI_ALLREDUCE_H

#include "lib/queue.h"

extern const fsdpi_algorithm fsdpi_allreduce_direct;
extern const fsdpi_algorithm fsdpi_allreduce_staged;
extern const fsdpi_algorithm fsdpi_allreduce_device;
extern const fsdpi_algorithm fsdpi_allreduce_cma;
extern const fsdpi_algorithm fsdpi_allreduce_rails;
extern const fsdpi_algorithm fsdpi_allreduce_rails_device;

#endif
