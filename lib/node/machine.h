/**
 * @file
 * What the library wants to know of the machine that this process runs on.
 */
#ifndef FSDPI_MACHINE_H
#define FSDPI_MACHINE_H

#include <mpi.h>
#include <sched.h>
#include <stddef.h>

/** A mask of hardware threads, for the CPU_*_S() of <sched.h>: as many as a Linux can be built for. One cpu_set_t holds 1024. */
enum { FSDPI_MOST_CORES = 8192 };
typedef struct fsdpi_core_mask {
    cpu_set_t set[FSDPI_MOST_CORES / CPU_SETSIZE];
} fsdpi_core_mask;

typedef struct fsdpi_machine {
    int    cores;       /* that the ranks may use between them; at least 1 */
    size_t cache_bytes; /* of the last level, of those caches that belong to these cores */
} fsdpi_machine;

/**
 * BYTES of the last-level caches above some cores.
 *
 * @param[in] root  in front of /sys: "", or where a test has made it up
 */
size_t fsdpi_cache_bytes(const char *root, const fsdpi_core_mask *cores);

/** Looks at the machine that all ranks of a communicator are on. Collective. MPI's code. */
int fsdpi_machine_look(MPI_Comm comm, int timeout_s, fsdpi_machine *machine);

#endif
