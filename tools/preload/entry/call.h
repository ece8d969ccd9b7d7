/**
 * @file
 * What the two halves of the drop-in tell each other. The entries stand where a program looks for MPI's functions; the engine
 * holds the library, and is loaded once MPI runs and turns out to be the one that it was built for. Nothing here needs mpi.h.
 */
#ifndef FSDPI_PRELOAD_CALL_H
#define FSDPI_PRELOAD_CALL_H

#include <stdbool.h>
#include <stdint.h>

/** The calls that are counted, and those among them that may be taken: name, what MPI calls it, whether it may be taken. */
#define FSDPI_PRELOAD_COLLECTIVES(X)                                                                                   \
    X(FSDPI_ALLGATHER, "allgather", true)                                                                              \
    X(FSDPI_ALLGATHERV, "allgatherv", true)                                                                            \
    X(FSDPI_ALLREDUCE, "allreduce", true)                                                                              \
    X(FSDPI_REDUCE_SCATTER, "reduce_scatter", true)                                                                    \
    X(FSDPI_REDUCE_SCATTER_BLOCK, "reduce_scatter_block", true)                                                        \
    X(FSDPI_BCAST, "bcast", true)                                                                                      \
    X(FSDPI_REDUCE, "reduce", true)                                                                                    \
    X(FSDPI_ALLTOALL, "alltoall", true)                                                                                \
    X(FSDPI_ALLTOALLV, "alltoallv", true)                                                                              \
    X(FSDPI_BARRIER, "barrier", true)                                                                                  \
    X(FSDPI_IALLGATHER, "iallgather", false)                                                                           \
    X(FSDPI_IALLGATHERV, "iallgatherv", false)                                                                         \
    X(FSDPI_IALLREDUCE, "iallreduce", false)                                                                           \
    X(FSDPI_IREDUCE_SCATTER, "ireduce_scatter", false)                                                                 \
    X(FSDPI_IREDUCE_SCATTER_BLOCK, "ireduce_scatter_block", false)                                                     \
    X(FSDPI_IBCAST, "ibcast", false)                                                                                   \
    X(FSDPI_IREDUCE, "ireduce", false)                                                                                 \
    X(FSDPI_IALLTOALL, "ialltoall", false)                                                                             \
    X(FSDPI_IALLTOALLV, "ialltoallv", false)                                                                           \
    X(FSDPI_IBARRIER, "ibarrier", false)                                                                               \
    X(FSDPI_PERSISTENT, "persistent", false)

#define FSDPI_PRELOAD_ENUMERATOR(name, text, covered) name,
typedef enum fsdpi_collective {
    FSDPI_PRELOAD_COLLECTIVES(FSDPI_PRELOAD_ENUMERATOR) FSDPI_N_COLLECTIVES
} fsdpi_collective;
#undef FSDPI_PRELOAD_ENUMERATOR
enum { FSDPI_N_COVERED = FSDPI_BARRIER + 1 };

/** A handle of MPI as it is passed: an int with MPICH, an address with Open MPI; with Fortran the value of its integer. */
typedef uintptr_t fsdpi_handle;

/** A call of the program. What a collective has no argument for is 0; bcast's buffer is `out`. */
typedef struct fsdpi_call {
    fsdpi_collective collective;
    bool             fortran; /**< handles and marks such as MPI_IN_PLACE are Fortran's */
    bool             wide;    /**< lists are of 64 bits: MPI_Count and MPI_Aint of the calls that end in _c */
    const void      *in;
    void            *out;
    int64_t          in_count, out_count; /**< ELEMENTS; of reductions and bcast: `out_count` */
    const void      *in_counts, *out_counts, *in_displacements, *out_displacements; /**< lists of int, or of 64 bits */
    fsdpi_handle     in_type, out_type; /**< of reductions and bcast: `out_type` */
    fsdpi_handle     op, comm;
    int              root;
} fsdpi_call;

/** What the engine does for the entries. */
typedef struct fsdpi_engine_table {
    bool never[FSDPI_N_COVERED]; /**< covered calls that go to MPI whatever they are, uncounted: none of the engine's */
    int (*call)(fsdpi_call *call);          /**< carries a covered call out, one way or the other: MPI's code */
    void (*passed)(fsdpi_collective which); /**< counts one that the entry hands to MPI */
    void (*finish)(void);                   /**< before MPI_Finalize() */
} fsdpi_engine_table;

/**
 * The one function that the engine exports, under this name. Collective over MPI_COMM_WORLD, after MPI_Init().
 *
 * @return what the entries are to call; or NULL: the engine stands aside, in all ranks alike, and has said why.
 */
typedef const fsdpi_engine_table *fsdpi_engine_start_function(void);
#define FSDPI_ENGINE_START "fsdpi_engine_start"

#endif
