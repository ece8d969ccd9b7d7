/** @file The algorithms of allgather beyond those through blocks, and the files that they are in. */
#ifndef FSDPI_ALLGATHER_H
#define FSDPI_ALLGATHER_H

#include "lib/progress/queue.h"

extern const fsdpi_algorithm fsdpi_allgather_direct;       /* direct.c */
extern const fsdpi_algorithm fsdpi_allgather_cma;          /* direct.c: the same, through process_vm_readv() */
extern const fsdpi_algorithm fsdpi_allgather_rails;        /* rails.c */
extern const fsdpi_algorithm fsdpi_allgather_ring;         /* ring.c */
extern const fsdpi_algorithm fsdpi_allgather_device;       /* device.c */
extern const fsdpi_algorithm fsdpi_allgather_rails_device; /* rails.c */
extern const fsdpi_algorithm fsdpi_allgather_ring_device;  /* ring.c */

#endif
