/**
 * @file
 * The ranks of the job, if there is one: alone, the program does without MPI, whose start would take most of its time.
 */
#ifndef TOPO_WORLD_H
#define TOPO_WORLD_H

#include <fsdp/fsdp.h>

/** Exit status for a wrong option, and for what cannot be read or written. */
#define TOPO_EXIT_USAGE 2

/** Exit status of --check where ranks are not as planned. */
#define TOPO_EXIT_DEVIATES 3

/** Returns from the calling function where `call` does not return FSDP_OK. */
#define TOPO_TRY(call)                                                                                                 \
    do {                                                                                                               \
        const fsdp_status topo_status_ = (call);                                                                       \
        if (topo_status_ != FSDP_OK) {                                                                                 \
            return topo_status_;                                                                                       \
        }                                                                                                              \
    } while (0)

typedef struct topo_world {
    int      has_mpi; /* 0: one rank, and the communicators are not there */
    int      rank, size;
    MPI_Comm node;    /* the ranks that share this machine's memory */
    MPI_Comm leaders; /* the lowest of each node, in the order of their ranks; MPI_COMM_NULL on others */
    int      node_rank, node_size;
} topo_world;

/** Whether a launcher of MPI programs has started this process. */
int topo_was_launched(void);

/** Collective over MPI_COMM_WORLD if `with_mpi`, between MPI_Init() and topo_world_close(). */
void topo_world_open(topo_world *world, int with_mpi);
void topo_world_close(topo_world *world);

/** Rank 0 prints one line to stderr. @return FSDP_ERR_ARG */
fsdp_status topo_fail(const topo_world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Collective: the largest status of all ranks. */
fsdp_status topo_agree(const topo_world *world, fsdp_status status);

/** Whether this rank speaks for its node. */
static inline int topo_leads(const topo_world *world)
{
    return world->node_rank == 0;
}

#endif
