/** @file The algorithms of allreduce beyond those that all collectives have, and the files that they are in. */
#ifndef FSDPI_ALLREDUCE_H
#define FSDPI_ALLREDUCE_H

#include "lib/progress/queue.h"

extern const fsdpi_algorithm fsdpi_allreduce_direct;       /* direct.c */
extern const fsdpi_algorithm fsdpi_allreduce_cma;          /* cma.c */
extern const fsdpi_algorithm fsdpi_allreduce_staged;       /* staged.c */
extern const fsdpi_algorithm fsdpi_allreduce_rails;        /* rails.c */
extern const fsdpi_algorithm fsdpi_allreduce_halves;       /* halves.c */
extern const fsdpi_algorithm fsdpi_allreduce_device;       /* device.c */
extern const fsdpi_algorithm fsdpi_allreduce_rails_device; /* rails.c */

#endif
