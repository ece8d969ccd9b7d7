/** @file The algorithms of reduce_scatter beyond those through blocks, which reduce has too, and the files that they are in. */
#ifndef FSDPI_REDUCE_SCATTER_H
#define FSDPI_REDUCE_SCATTER_H

#include "lib/progress/queue.h"

extern const fsdpi_algorithm fsdpi_reduce_scatter_direct;       /* direct.c */
extern const fsdpi_algorithm fsdpi_reduce_scatter_cma;          /* direct.c: the same, through process_vm_readv() */
extern const fsdpi_algorithm fsdpi_reduce_scatter_rails;        /* rails.c */
extern const fsdpi_algorithm fsdpi_reduce_scatter_device;       /* device.c */
extern const fsdpi_algorithm fsdpi_reduce_scatter_rails_device; /* rails.c */

#endif
