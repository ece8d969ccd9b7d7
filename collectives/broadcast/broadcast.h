/** @file The algorithms of broadcast beyond those through blocks, and the files that they are in. */
#ifndef FSDPI_BROADCAST_H
#define FSDPI_BROADCAST_H

#include "lib/progress/queue.h"

extern const fsdpi_algorithm fsdpi_broadcast_direct;      /* direct.c */
extern const fsdpi_algorithm fsdpi_broadcast_cma;         /* direct.c: the same, through process_vm_readv() */
extern const fsdpi_algorithm fsdpi_broadcast_mpi;         /* mpi.c */
extern const fsdpi_algorithm fsdpi_broadcast_device;      /* device.c */
extern const fsdpi_algorithm fsdpi_broadcast_ring;        /* ring.c */
extern const fsdpi_algorithm fsdpi_broadcast_ring_device; /* ring.c */

#endif
