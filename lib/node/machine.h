/**
 * @file
 * What the library wants to know of the machine that this process runs on.
 */
#ifndef FSDPI_MACHINE_H
#define FSDPI_MACHINE_H

#include <mpi.h>
#include <stddef.h>

typedef struct fsdpi_machine {
    int    cores;       /* that the ranks may use between them; at least 1 */
    size_t cache_bytes; /* of the last level, of those caches that belong to these cores */
} fsdpi_machine;

/** Looks at the machine that all ranks of a communicator are on. Collective. MPI's code. */
int fsdpi_machine_look(MPI_Comm comm, int timeout_s, fsdpi_machine *machine);

#endif
