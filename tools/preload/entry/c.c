/* The functions of C, under MPI's names. Covered calls go to the engine where there is one, all others to MPI as they are. */
#include <stddef.h>
#include <string.h>

#include "tools/preload/entry/load.h"

#define EXPORT __attribute__((visibility("default")))

/* Fills in, at the first call, what the call would reach without the drop-in. */
#define FIND(next, name)                                                                                               \
    if ((next) == NULL) {                                                                                              \
        void *const found = fsdpi_next(name);                                                                          \
        memcpy(&(next), &found, sizeof found);                                                                         \
    }

/* NOLINTBEGIN(bugprone-macro-parentheses): parameters and arguments come in theirs */
#define COVERED(function, passed_to, which, parameters, arguments, ...)                                                \
    EXPORT int function parameters;                                                                                    \
    EXPORT int function parameters                                                                                     \
    {                                                                                                                  \
        static int(*next) parameters;                                                                                  \
                                                                                                                       \
        if (fsdpi_engine != NULL && !fsdpi_engine->never[which]) {                                                     \
            fsdpi_call call = {.collective = (which), __VA_ARGS__};                                                    \
            return fsdpi_engine->call(&call);                                                                          \
        }                                                                                                              \
        FIND(next, passed_to)                                                                                          \
        return next arguments;                                                                                         \
    }

#define PASSED(function, passed_to, which, parameters, arguments)                                                      \
    EXPORT int function parameters;                                                                                    \
    EXPORT int function parameters                                                                                     \
    {                                                                                                                  \
        static int(*next) parameters;                                                                                  \
                                                                                                                       \
        if (fsdpi_engine != NULL) {                                                                                    \
            fsdpi_engine->passed(which);                                                                               \
        }                                                                                                              \
        FIND(next, passed_to)                                                                                          \
        return next arguments;                                                                                         \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

COVERED(MPI_Allgather, "PMPI_Allgather", FSDPI_ALLGATHER,
        (const void *in, int in_count, fsdpi_handle in_type, void *out, int out_count, fsdpi_handle out_type,
         fsdpi_handle comm),
        (in, in_count, in_type, out, out_count, out_type, comm), .in = in, .in_count = in_count, .in_type = in_type,
        .out = out, .out_count = out_count, .out_type = out_type, .comm = comm)
COVERED(MPI_Allgather_c, "PMPI_Allgather_c", FSDPI_ALLGATHER,
        (const void *in, int64_t in_count, fsdpi_handle in_type, void *out, int64_t out_count, fsdpi_handle out_type,
         fsdpi_handle comm),
        (in, in_count, in_type, out, out_count, out_type, comm), .wide = true, .in = in, .in_count = in_count,
        .in_type = in_type, .out = out, .out_count = out_count, .out_type = out_type, .comm = comm)
COVERED(MPI_Allgatherv, "PMPI_Allgatherv", FSDPI_ALLGATHERV,
        (const void *in, int in_count, fsdpi_handle in_type, void *out, const void *out_counts,
         const void *out_displacements, fsdpi_handle out_type, fsdpi_handle comm),
        (in, in_count, in_type, out, out_counts, out_displacements, out_type, comm), .in = in, .in_count = in_count,
        .in_type = in_type, .out = out, .out_counts = out_counts, .out_displacements = out_displacements,
        .out_type = out_type, .comm = comm)
COVERED(MPI_Allgatherv_c, "PMPI_Allgatherv_c", FSDPI_ALLGATHERV,
        (const void *in, int64_t in_count, fsdpi_handle in_type, void *out, const void *out_counts,
         const void *out_displacements, fsdpi_handle out_type, fsdpi_handle comm),
        (in, in_count, in_type, out, out_counts, out_displacements, out_type, comm), .wide = true, .in = in,
        .in_count = in_count, .in_type = in_type, .out = out, .out_counts = out_counts,
        .out_displacements = out_displacements, .out_type = out_type, .comm = comm)
COVERED(MPI_Allreduce, "PMPI_Allreduce", FSDPI_ALLREDUCE,
        (const void *in, void *out, int out_count, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm),
        (in, out, out_count, out_type, op, comm), .in = in, .out = out, .out_count = out_count, .out_type = out_type,
        .op = op, .comm = comm)
COVERED(MPI_Allreduce_c, "PMPI_Allreduce_c", FSDPI_ALLREDUCE,
        (const void *in, void *out, int64_t out_count, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm),
        (in, out, out_count, out_type, op, comm), .wide = true, .in = in, .out = out, .out_count = out_count,
        .out_type = out_type, .op = op, .comm = comm)
COVERED(MPI_Reduce_scatter, "PMPI_Reduce_scatter", FSDPI_REDUCE_SCATTER,
        (const void *in, void *out, const void *out_counts, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm),
        (in, out, out_counts, out_type, op, comm), .in = in, .out = out, .out_counts = out_counts, .out_type = out_type,
        .op = op, .comm = comm)
COVERED(MPI_Reduce_scatter_c, "PMPI_Reduce_scatter_c", FSDPI_REDUCE_SCATTER,
        (const void *in, void *out, const void *out_counts, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm),
        (in, out, out_counts, out_type, op, comm), .wide = true, .in = in, .out = out, .out_counts = out_counts,
        .out_type = out_type, .op = op, .comm = comm)
COVERED(MPI_Reduce_scatter_block, "PMPI_Reduce_scatter_block", FSDPI_REDUCE_SCATTER_BLOCK,
        (const void *in, void *out, int out_count, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm),
        (in, out, out_count, out_type, op, comm), .in = in, .out = out, .out_count = out_count, .out_type = out_type,
        .op = op, .comm = comm)
COVERED(MPI_Reduce_scatter_block_c, "PMPI_Reduce_scatter_block_c", FSDPI_REDUCE_SCATTER_BLOCK,
        (const void *in, void *out, int64_t out_count, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm),
        (in, out, out_count, out_type, op, comm), .wide = true, .in = in, .out = out, .out_count = out_count,
        .out_type = out_type, .op = op, .comm = comm)
COVERED(MPI_Bcast, "PMPI_Bcast", FSDPI_BCAST,
        (void *out, int out_count, fsdpi_handle out_type, int root, fsdpi_handle comm),
        (out, out_count, out_type, root, comm), .out = out, .out_count = out_count, .out_type = out_type, .root = root,
        .comm = comm)
COVERED(MPI_Bcast_c, "PMPI_Bcast_c", FSDPI_BCAST,
        (void *out, int64_t out_count, fsdpi_handle out_type, int root, fsdpi_handle comm),
        (out, out_count, out_type, root, comm), .wide = true, .out = out, .out_count = out_count, .out_type = out_type,
        .root = root, .comm = comm)
COVERED(MPI_Reduce, "PMPI_Reduce", FSDPI_REDUCE,
        (const void *in, void *out, int out_count, fsdpi_handle out_type, fsdpi_handle op, int root, fsdpi_handle comm),
        (in, out, out_count, out_type, op, root, comm), .in = in, .out = out, .out_count = out_count,
        .out_type = out_type, .op = op, .root = root, .comm = comm)
COVERED(MPI_Reduce_c, "PMPI_Reduce_c", FSDPI_REDUCE,
        (const void *in, void *out, int64_t out_count, fsdpi_handle out_type, fsdpi_handle op, int root,
         fsdpi_handle comm),
        (in, out, out_count, out_type, op, root, comm), .wide = true, .in = in, .out = out, .out_count = out_count,
        .out_type = out_type, .op = op, .root = root, .comm = comm)
COVERED(MPI_Alltoall, "PMPI_Alltoall", FSDPI_ALLTOALL,
        (const void *in, int in_count, fsdpi_handle in_type, void *out, int out_count, fsdpi_handle out_type,
         fsdpi_handle comm),
        (in, in_count, in_type, out, out_count, out_type, comm), .in = in, .in_count = in_count, .in_type = in_type,
        .out = out, .out_count = out_count, .out_type = out_type, .comm = comm)
COVERED(MPI_Alltoall_c, "PMPI_Alltoall_c", FSDPI_ALLTOALL,
        (const void *in, int64_t in_count, fsdpi_handle in_type, void *out, int64_t out_count, fsdpi_handle out_type,
         fsdpi_handle comm),
        (in, in_count, in_type, out, out_count, out_type, comm), .wide = true, .in = in, .in_count = in_count,
        .in_type = in_type, .out = out, .out_count = out_count, .out_type = out_type, .comm = comm)
COVERED(MPI_Alltoallv, "PMPI_Alltoallv", FSDPI_ALLTOALLV,
        (const void *in, const void *in_counts, const void *in_displacements, fsdpi_handle in_type, void *out,
         const void *out_counts, const void *out_displacements, fsdpi_handle out_type, fsdpi_handle comm),
        (in, in_counts, in_displacements, in_type, out, out_counts, out_displacements, out_type, comm), .in = in,
        .in_counts = in_counts, .in_displacements = in_displacements, .in_type = in_type, .out = out,
        .out_counts = out_counts, .out_displacements = out_displacements, .out_type = out_type, .comm = comm)
COVERED(MPI_Alltoallv_c, "PMPI_Alltoallv_c", FSDPI_ALLTOALLV,
        (const void *in, const void *in_counts, const void *in_displacements, fsdpi_handle in_type, void *out,
         const void *out_counts, const void *out_displacements, fsdpi_handle out_type, fsdpi_handle comm),
        (in, in_counts, in_displacements, in_type, out, out_counts, out_displacements, out_type, comm), .wide = true,
        .in = in, .in_counts = in_counts, .in_displacements = in_displacements, .in_type = in_type, .out = out,
        .out_counts = out_counts, .out_displacements = out_displacements, .out_type = out_type, .comm = comm)
COVERED(MPI_Barrier, "PMPI_Barrier", FSDPI_BARRIER, (fsdpi_handle comm), (comm), .comm = comm)

PASSED(MPI_Iallgather, "PMPI_Iallgather", FSDPI_IALLGATHER,
       (const void *in, int in_count, fsdpi_handle in_type, void *out, int out_count, fsdpi_handle out_type,
        fsdpi_handle comm, void *request),
       (in, in_count, in_type, out, out_count, out_type, comm, request))
PASSED(MPI_Allgather_init, "PMPI_Allgather_init", FSDPI_PERSISTENT,
       (const void *in, int in_count, fsdpi_handle in_type, void *out, int out_count, fsdpi_handle out_type,
        fsdpi_handle comm, fsdpi_handle info, void *request),
       (in, in_count, in_type, out, out_count, out_type, comm, info, request))
PASSED(MPI_Iallgather_c, "PMPI_Iallgather_c", FSDPI_IALLGATHER,
       (const void *in, int64_t in_count, fsdpi_handle in_type, void *out, int64_t out_count, fsdpi_handle out_type,
        fsdpi_handle comm, void *request),
       (in, in_count, in_type, out, out_count, out_type, comm, request))
PASSED(MPI_Allgather_init_c, "PMPI_Allgather_init_c", FSDPI_PERSISTENT,
       (const void *in, int64_t in_count, fsdpi_handle in_type, void *out, int64_t out_count, fsdpi_handle out_type,
        fsdpi_handle comm, fsdpi_handle info, void *request),
       (in, in_count, in_type, out, out_count, out_type, comm, info, request))
PASSED(MPI_Iallgatherv, "PMPI_Iallgatherv", FSDPI_IALLGATHERV,
       (const void *in, int in_count, fsdpi_handle in_type, void *out, const void *out_counts,
        const void *out_displacements, fsdpi_handle out_type, fsdpi_handle comm, void *request),
       (in, in_count, in_type, out, out_counts, out_displacements, out_type, comm, request))
PASSED(MPI_Allgatherv_init, "PMPI_Allgatherv_init", FSDPI_PERSISTENT,
       (const void *in, int in_count, fsdpi_handle in_type, void *out, const void *out_counts,
        const void *out_displacements, fsdpi_handle out_type, fsdpi_handle comm, fsdpi_handle info, void *request),
       (in, in_count, in_type, out, out_counts, out_displacements, out_type, comm, info, request))
PASSED(MPI_Iallgatherv_c, "PMPI_Iallgatherv_c", FSDPI_IALLGATHERV,
       (const void *in, int64_t in_count, fsdpi_handle in_type, void *out, const void *out_counts,
        const void *out_displacements, fsdpi_handle out_type, fsdpi_handle comm, void *request),
       (in, in_count, in_type, out, out_counts, out_displacements, out_type, comm, request))
PASSED(MPI_Allgatherv_init_c, "PMPI_Allgatherv_init_c", FSDPI_PERSISTENT,
       (const void *in, int64_t in_count, fsdpi_handle in_type, void *out, const void *out_counts,
        const void *out_displacements, fsdpi_handle out_type, fsdpi_handle comm, fsdpi_handle info, void *request),
       (in, in_count, in_type, out, out_counts, out_displacements, out_type, comm, info, request))
PASSED(MPI_Iallreduce, "PMPI_Iallreduce", FSDPI_IALLREDUCE,
       (const void *in, void *out, int out_count, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm,
        void *request),
       (in, out, out_count, out_type, op, comm, request))
PASSED(MPI_Allreduce_init, "PMPI_Allreduce_init", FSDPI_PERSISTENT,
       (const void *in, void *out, int out_count, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm,
        fsdpi_handle info, void *request),
       (in, out, out_count, out_type, op, comm, info, request))
PASSED(MPI_Iallreduce_c, "PMPI_Iallreduce_c", FSDPI_IALLREDUCE,
       (const void *in, void *out, int64_t out_count, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm,
        void *request),
       (in, out, out_count, out_type, op, comm, request))
PASSED(MPI_Allreduce_init_c, "PMPI_Allreduce_init_c", FSDPI_PERSISTENT,
       (const void *in, void *out, int64_t out_count, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm,
        fsdpi_handle info, void *request),
       (in, out, out_count, out_type, op, comm, info, request))
PASSED(MPI_Ireduce_scatter, "PMPI_Ireduce_scatter", FSDPI_IREDUCE_SCATTER,
       (const void *in, void *out, const void *out_counts, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm,
        void *request),
       (in, out, out_counts, out_type, op, comm, request))
PASSED(MPI_Reduce_scatter_init, "PMPI_Reduce_scatter_init", FSDPI_PERSISTENT,
       (const void *in, void *out, const void *out_counts, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm,
        fsdpi_handle info, void *request),
       (in, out, out_counts, out_type, op, comm, info, request))
PASSED(MPI_Ireduce_scatter_c, "PMPI_Ireduce_scatter_c", FSDPI_IREDUCE_SCATTER,
       (const void *in, void *out, const void *out_counts, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm,
        void *request),
       (in, out, out_counts, out_type, op, comm, request))
PASSED(MPI_Reduce_scatter_init_c, "PMPI_Reduce_scatter_init_c", FSDPI_PERSISTENT,
       (const void *in, void *out, const void *out_counts, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm,
        fsdpi_handle info, void *request),
       (in, out, out_counts, out_type, op, comm, info, request))
PASSED(MPI_Ireduce_scatter_block, "PMPI_Ireduce_scatter_block", FSDPI_IREDUCE_SCATTER_BLOCK,
       (const void *in, void *out, int out_count, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm,
        void *request),
       (in, out, out_count, out_type, op, comm, request))
PASSED(MPI_Reduce_scatter_block_init, "PMPI_Reduce_scatter_block_init", FSDPI_PERSISTENT,
       (const void *in, void *out, int out_count, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm,
        fsdpi_handle info, void *request),
       (in, out, out_count, out_type, op, comm, info, request))
PASSED(MPI_Ireduce_scatter_block_c, "PMPI_Ireduce_scatter_block_c", FSDPI_IREDUCE_SCATTER_BLOCK,
       (const void *in, void *out, int64_t out_count, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm,
        void *request),
       (in, out, out_count, out_type, op, comm, request))
PASSED(MPI_Reduce_scatter_block_init_c, "PMPI_Reduce_scatter_block_init_c", FSDPI_PERSISTENT,
       (const void *in, void *out, int64_t out_count, fsdpi_handle out_type, fsdpi_handle op, fsdpi_handle comm,
        fsdpi_handle info, void *request),
       (in, out, out_count, out_type, op, comm, info, request))
PASSED(MPI_Ibcast, "PMPI_Ibcast", FSDPI_IBCAST,
       (void *out, int out_count, fsdpi_handle out_type, int root, fsdpi_handle comm, void *request),
       (out, out_count, out_type, root, comm, request))
PASSED(MPI_Bcast_init, "PMPI_Bcast_init", FSDPI_PERSISTENT,
       (void *out, int out_count, fsdpi_handle out_type, int root, fsdpi_handle comm, fsdpi_handle info, void *request),
       (out, out_count, out_type, root, comm, info, request))
PASSED(MPI_Ibcast_c, "PMPI_Ibcast_c", FSDPI_IBCAST,
       (void *out, int64_t out_count, fsdpi_handle out_type, int root, fsdpi_handle comm, void *request),
       (out, out_count, out_type, root, comm, request))
PASSED(MPI_Bcast_init_c, "PMPI_Bcast_init_c", FSDPI_PERSISTENT,
       (void *out, int64_t out_count, fsdpi_handle out_type, int root, fsdpi_handle comm, fsdpi_handle info,
        void *request),
       (out, out_count, out_type, root, comm, info, request))
PASSED(MPI_Ireduce, "PMPI_Ireduce", FSDPI_IREDUCE,
       (const void *in, void *out, int out_count, fsdpi_handle out_type, fsdpi_handle op, int root, fsdpi_handle comm,
        void *request),
       (in, out, out_count, out_type, op, root, comm, request))
PASSED(MPI_Reduce_init, "PMPI_Reduce_init", FSDPI_PERSISTENT,
       (const void *in, void *out, int out_count, fsdpi_handle out_type, fsdpi_handle op, int root, fsdpi_handle comm,
        fsdpi_handle info, void *request),
       (in, out, out_count, out_type, op, root, comm, info, request))
PASSED(MPI_Ireduce_c, "PMPI_Ireduce_c", FSDPI_IREDUCE,
       (const void *in, void *out, int64_t out_count, fsdpi_handle out_type, fsdpi_handle op, int root,
        fsdpi_handle comm, void *request),
       (in, out, out_count, out_type, op, root, comm, request))
PASSED(MPI_Reduce_init_c, "PMPI_Reduce_init_c", FSDPI_PERSISTENT,
       (const void *in, void *out, int64_t out_count, fsdpi_handle out_type, fsdpi_handle op, int root,
        fsdpi_handle comm, fsdpi_handle info, void *request),
       (in, out, out_count, out_type, op, root, comm, info, request))
PASSED(MPI_Ialltoall, "PMPI_Ialltoall", FSDPI_IALLTOALL,
       (const void *in, int in_count, fsdpi_handle in_type, void *out, int out_count, fsdpi_handle out_type,
        fsdpi_handle comm, void *request),
       (in, in_count, in_type, out, out_count, out_type, comm, request))
PASSED(MPI_Alltoall_init, "PMPI_Alltoall_init", FSDPI_PERSISTENT,
       (const void *in, int in_count, fsdpi_handle in_type, void *out, int out_count, fsdpi_handle out_type,
        fsdpi_handle comm, fsdpi_handle info, void *request),
       (in, in_count, in_type, out, out_count, out_type, comm, info, request))
PASSED(MPI_Ialltoall_c, "PMPI_Ialltoall_c", FSDPI_IALLTOALL,
       (const void *in, int64_t in_count, fsdpi_handle in_type, void *out, int64_t out_count, fsdpi_handle out_type,
        fsdpi_handle comm, void *request),
       (in, in_count, in_type, out, out_count, out_type, comm, request))
PASSED(MPI_Alltoall_init_c, "PMPI_Alltoall_init_c", FSDPI_PERSISTENT,
       (const void *in, int64_t in_count, fsdpi_handle in_type, void *out, int64_t out_count, fsdpi_handle out_type,
        fsdpi_handle comm, fsdpi_handle info, void *request),
       (in, in_count, in_type, out, out_count, out_type, comm, info, request))
PASSED(MPI_Ialltoallv, "PMPI_Ialltoallv", FSDPI_IALLTOALLV,
       (const void *in, const void *in_counts, const void *in_displacements, fsdpi_handle in_type, void *out,
        const void *out_counts, const void *out_displacements, fsdpi_handle out_type, fsdpi_handle comm, void *request),
       (in, in_counts, in_displacements, in_type, out, out_counts, out_displacements, out_type, comm, request))
PASSED(MPI_Alltoallv_init, "PMPI_Alltoallv_init", FSDPI_PERSISTENT,
       (const void *in, const void *in_counts, const void *in_displacements, fsdpi_handle in_type, void *out,
        const void *out_counts, const void *out_displacements, fsdpi_handle out_type, fsdpi_handle comm,
        fsdpi_handle info, void *request),
       (in, in_counts, in_displacements, in_type, out, out_counts, out_displacements, out_type, comm, info, request))
PASSED(MPI_Ialltoallv_c, "PMPI_Ialltoallv_c", FSDPI_IALLTOALLV,
       (const void *in, const void *in_counts, const void *in_displacements, fsdpi_handle in_type, void *out,
        const void *out_counts, const void *out_displacements, fsdpi_handle out_type, fsdpi_handle comm, void *request),
       (in, in_counts, in_displacements, in_type, out, out_counts, out_displacements, out_type, comm, request))
PASSED(MPI_Alltoallv_init_c, "PMPI_Alltoallv_init_c", FSDPI_PERSISTENT,
       (const void *in, const void *in_counts, const void *in_displacements, fsdpi_handle in_type, void *out,
        const void *out_counts, const void *out_displacements, fsdpi_handle out_type, fsdpi_handle comm,
        fsdpi_handle info, void *request),
       (in, in_counts, in_displacements, in_type, out, out_counts, out_displacements, out_type, comm, info, request))
PASSED(MPI_Ibarrier, "PMPI_Ibarrier", FSDPI_IBARRIER, (fsdpi_handle comm, void *request), (comm, request))
PASSED(MPI_Barrier_init, "PMPI_Barrier_init", FSDPI_PERSISTENT, (fsdpi_handle comm, fsdpi_handle info, void *request),
       (comm, info, request))

EXPORT int MPI_Init(void *argc, void *argv);
EXPORT int MPI_Init(void *argc, void *argv)
{
    static int (*next)(void *, void *);

    FIND(next, "PMPI_Init")
    const int code = next(argc, argv);
    if (code == 0) {
        fsdpi_engine_load();
    }
    return code;
}

EXPORT int MPI_Init_thread(void *argc, void *argv, int wanted, int *got);
EXPORT int MPI_Init_thread(void *argc, void *argv, int wanted, int *got)
{
    static int (*next)(void *, void *, int, int *);

    FIND(next, "PMPI_Init_thread")
    const int code = next(argc, argv, wanted, got);
    if (code == 0) {
        fsdpi_engine_load();
    }
    return code;
}

EXPORT int MPI_Finalize(void);
EXPORT int MPI_Finalize(void)
{
    static int (*next)(void);

    FIND(next, "PMPI_Finalize")
    fsdpi_engine_unload();
    return next();
}
