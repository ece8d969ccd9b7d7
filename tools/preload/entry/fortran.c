/*
 * The functions of Fortran, for MPIs whose Fortran does not enter through C's names: under what compilers make of mpi_bcast,
 * and under mpi_bcast_f08_ of the module mpi_f08.
 */
#include "tools/preload/entry/fortran.h"

static bool take_allgather(void *in, const int *in_count, const int *in_type, void *out, const int *out_count,
                           const int *out_type, const int *comm, int *error)
{
    fsdpi_call call = {.collective = FSDPI_ALLGATHER,
                       .fortran    = true,
                       .in         = in,
                       .in_count   = *in_count,
                       .in_type    = (fsdpi_handle)*in_type,
                       .out        = out,
                       .out_count  = *out_count,
                       .out_type   = (fsdpi_handle)*out_type,
                       .comm       = (fsdpi_handle)*comm};

    return fsdpi_give(&call, error);
}

static bool take_allgatherv(void *in, const int *in_count, const int *in_type, void *out, const int *out_counts,
                            const int *out_displacements, const int *out_type, const int *comm, int *error)
{
    fsdpi_call call = {.collective        = FSDPI_ALLGATHERV,
                       .fortran           = true,
                       .in                = in,
                       .in_count          = *in_count,
                       .in_type           = (fsdpi_handle)*in_type,
                       .out               = out,
                       .out_counts        = out_counts,
                       .out_displacements = out_displacements,
                       .out_type          = (fsdpi_handle)*out_type,
                       .comm              = (fsdpi_handle)*comm};

    return fsdpi_give(&call, error);
}

static bool take_allreduce(void *in, void *out, const int *out_count, const int *out_type, const int *op,
                           const int *comm, int *error)
{
    fsdpi_call call = {.collective = FSDPI_ALLREDUCE,
                       .fortran    = true,
                       .in         = in,
                       .out        = out,
                       .out_count  = *out_count,
                       .out_type   = (fsdpi_handle)*out_type,
                       .op         = (fsdpi_handle)*op,
                       .comm       = (fsdpi_handle)*comm};

    return fsdpi_give(&call, error);
}

static bool take_reduce_scatter(void *in, void *out, const int *out_counts, const int *out_type, const int *op,
                                const int *comm, int *error)
{
    fsdpi_call call = {.collective = FSDPI_REDUCE_SCATTER,
                       .fortran    = true,
                       .in         = in,
                       .out        = out,
                       .out_counts = out_counts,
                       .out_type   = (fsdpi_handle)*out_type,
                       .op         = (fsdpi_handle)*op,
                       .comm       = (fsdpi_handle)*comm};

    return fsdpi_give(&call, error);
}

static bool take_reduce_scatter_block(void *in, void *out, const int *out_count, const int *out_type, const int *op,
                                      const int *comm, int *error)
{
    fsdpi_call call = {.collective = FSDPI_REDUCE_SCATTER_BLOCK,
                       .fortran    = true,
                       .in         = in,
                       .out        = out,
                       .out_count  = *out_count,
                       .out_type   = (fsdpi_handle)*out_type,
                       .op         = (fsdpi_handle)*op,
                       .comm       = (fsdpi_handle)*comm};

    return fsdpi_give(&call, error);
}

static bool take_bcast(void *out, const int *out_count, const int *out_type, const int *root, const int *comm,
                       int *error)
{
    fsdpi_call call = {.collective = FSDPI_BCAST,
                       .fortran    = true,
                       .out        = out,
                       .out_count  = *out_count,
                       .out_type   = (fsdpi_handle)*out_type,
                       .root       = *root,
                       .comm       = (fsdpi_handle)*comm};

    return fsdpi_give(&call, error);
}

static bool take_reduce(void *in, void *out, const int *out_count, const int *out_type, const int *op, const int *root,
                        const int *comm, int *error)
{
    fsdpi_call call = {.collective = FSDPI_REDUCE,
                       .fortran    = true,
                       .in         = in,
                       .out        = out,
                       .out_count  = *out_count,
                       .out_type   = (fsdpi_handle)*out_type,
                       .op         = (fsdpi_handle)*op,
                       .root       = *root,
                       .comm       = (fsdpi_handle)*comm};

    return fsdpi_give(&call, error);
}

static bool take_alltoall(void *in, const int *in_count, const int *in_type, void *out, const int *out_count,
                          const int *out_type, const int *comm, int *error)
{
    fsdpi_call call = {.collective = FSDPI_ALLTOALL,
                       .fortran    = true,
                       .in         = in,
                       .in_count   = *in_count,
                       .in_type    = (fsdpi_handle)*in_type,
                       .out        = out,
                       .out_count  = *out_count,
                       .out_type   = (fsdpi_handle)*out_type,
                       .comm       = (fsdpi_handle)*comm};

    return fsdpi_give(&call, error);
}

static bool take_alltoallv(void *in, const int *in_counts, const int *in_displacements, const int *in_type, void *out,
                           const int *out_counts, const int *out_displacements, const int *out_type, const int *comm,
                           int *error)
{
    fsdpi_call call = {.collective        = FSDPI_ALLTOALLV,
                       .fortran           = true,
                       .in                = in,
                       .in_counts         = in_counts,
                       .in_displacements  = in_displacements,
                       .in_type           = (fsdpi_handle)*in_type,
                       .out               = out,
                       .out_counts        = out_counts,
                       .out_displacements = out_displacements,
                       .out_type          = (fsdpi_handle)*out_type,
                       .comm              = (fsdpi_handle)*comm};

    return fsdpi_give(&call, error);
}

TAKEN(mpi_allgather, "mpi_allgather", take_allgather,
      (void *in, int *in_count, int *in_type, void *out, int *out_count, int *out_type, int *comm, int *error),
      (in, in_count, in_type, out, out_count, out_type, comm, error))
TAKEN(mpi_allgather_, "mpi_allgather_", take_allgather,
      (void *in, int *in_count, int *in_type, void *out, int *out_count, int *out_type, int *comm, int *error),
      (in, in_count, in_type, out, out_count, out_type, comm, error))
TAKEN(mpi_allgather__, "mpi_allgather__", take_allgather,
      (void *in, int *in_count, int *in_type, void *out, int *out_count, int *out_type, int *comm, int *error),
      (in, in_count, in_type, out, out_count, out_type, comm, error))
TAKEN(MPI_ALLGATHER, "MPI_ALLGATHER", take_allgather,
      (void *in, int *in_count, int *in_type, void *out, int *out_count, int *out_type, int *comm, int *error),
      (in, in_count, in_type, out, out_count, out_type, comm, error))
TAKEN(mpi_allgather_f08_, "mpi_allgather_f08_", take_allgather,
      (void *in, int *in_count, int *in_type, void *out, int *out_count, int *out_type, int *comm, int *error),
      (in, in_count, in_type, out, out_count, out_type, comm, error))
TAKEN(mpi_allgatherv, "mpi_allgatherv", take_allgatherv,
      (void *in, int *in_count, int *in_type, void *out, int *out_counts, int *out_displacements, int *out_type,
       int *comm, int *error),
      (in, in_count, in_type, out, out_counts, out_displacements, out_type, comm, error))
TAKEN(mpi_allgatherv_, "mpi_allgatherv_", take_allgatherv,
      (void *in, int *in_count, int *in_type, void *out, int *out_counts, int *out_displacements, int *out_type,
       int *comm, int *error),
      (in, in_count, in_type, out, out_counts, out_displacements, out_type, comm, error))
TAKEN(mpi_allgatherv__, "mpi_allgatherv__", take_allgatherv,
      (void *in, int *in_count, int *in_type, void *out, int *out_counts, int *out_displacements, int *out_type,
       int *comm, int *error),
      (in, in_count, in_type, out, out_counts, out_displacements, out_type, comm, error))
TAKEN(MPI_ALLGATHERV, "MPI_ALLGATHERV", take_allgatherv,
      (void *in, int *in_count, int *in_type, void *out, int *out_counts, int *out_displacements, int *out_type,
       int *comm, int *error),
      (in, in_count, in_type, out, out_counts, out_displacements, out_type, comm, error))
TAKEN(mpi_allgatherv_f08_, "mpi_allgatherv_f08_", take_allgatherv,
      (void *in, int *in_count, int *in_type, void *out, int *out_counts, int *out_displacements, int *out_type,
       int *comm, int *error),
      (in, in_count, in_type, out, out_counts, out_displacements, out_type, comm, error))
TAKEN(mpi_allreduce, "mpi_allreduce", take_allreduce,
      (void *in, void *out, int *out_count, int *out_type, int *op, int *comm, int *error),
      (in, out, out_count, out_type, op, comm, error))
TAKEN(mpi_allreduce_, "mpi_allreduce_", take_allreduce,
      (void *in, void *out, int *out_count, int *out_type, int *op, int *comm, int *error),
      (in, out, out_count, out_type, op, comm, error))
TAKEN(mpi_allreduce__, "mpi_allreduce__", take_allreduce,
      (void *in, void *out, int *out_count, int *out_type, int *op, int *comm, int *error),
      (in, out, out_count, out_type, op, comm, error))
TAKEN(MPI_ALLREDUCE, "MPI_ALLREDUCE", take_allreduce,
      (void *in, void *out, int *out_count, int *out_type, int *op, int *comm, int *error),
      (in, out, out_count, out_type, op, comm, error))
TAKEN(mpi_allreduce_f08_, "mpi_allreduce_f08_", take_allreduce,
      (void *in, void *out, int *out_count, int *out_type, int *op, int *comm, int *error),
      (in, out, out_count, out_type, op, comm, error))
TAKEN(mpi_reduce_scatter, "mpi_reduce_scatter", take_reduce_scatter,
      (void *in, void *out, int *out_counts, int *out_type, int *op, int *comm, int *error),
      (in, out, out_counts, out_type, op, comm, error))
TAKEN(mpi_reduce_scatter_, "mpi_reduce_scatter_", take_reduce_scatter,
      (void *in, void *out, int *out_counts, int *out_type, int *op, int *comm, int *error),
      (in, out, out_counts, out_type, op, comm, error))
TAKEN(mpi_reduce_scatter__, "mpi_reduce_scatter__", take_reduce_scatter,
      (void *in, void *out, int *out_counts, int *out_type, int *op, int *comm, int *error),
      (in, out, out_counts, out_type, op, comm, error))
TAKEN(MPI_REDUCE_SCATTER, "MPI_REDUCE_SCATTER", take_reduce_scatter,
      (void *in, void *out, int *out_counts, int *out_type, int *op, int *comm, int *error),
      (in, out, out_counts, out_type, op, comm, error))
TAKEN(mpi_reduce_scatter_f08_, "mpi_reduce_scatter_f08_", take_reduce_scatter,
      (void *in, void *out, int *out_counts, int *out_type, int *op, int *comm, int *error),
      (in, out, out_counts, out_type, op, comm, error))
TAKEN(mpi_reduce_scatter_block, "mpi_reduce_scatter_block", take_reduce_scatter_block,
      (void *in, void *out, int *out_count, int *out_type, int *op, int *comm, int *error),
      (in, out, out_count, out_type, op, comm, error))
TAKEN(mpi_reduce_scatter_block_, "mpi_reduce_scatter_block_", take_reduce_scatter_block,
      (void *in, void *out, int *out_count, int *out_type, int *op, int *comm, int *error),
      (in, out, out_count, out_type, op, comm, error))
TAKEN(mpi_reduce_scatter_block__, "mpi_reduce_scatter_block__", take_reduce_scatter_block,
      (void *in, void *out, int *out_count, int *out_type, int *op, int *comm, int *error),
      (in, out, out_count, out_type, op, comm, error))
TAKEN(MPI_REDUCE_SCATTER_BLOCK, "MPI_REDUCE_SCATTER_BLOCK", take_reduce_scatter_block,
      (void *in, void *out, int *out_count, int *out_type, int *op, int *comm, int *error),
      (in, out, out_count, out_type, op, comm, error))
TAKEN(mpi_reduce_scatter_block_f08_, "mpi_reduce_scatter_block_f08_", take_reduce_scatter_block,
      (void *in, void *out, int *out_count, int *out_type, int *op, int *comm, int *error),
      (in, out, out_count, out_type, op, comm, error))
TAKEN(mpi_bcast, "mpi_bcast", take_bcast, (void *out, int *out_count, int *out_type, int *root, int *comm, int *error),
      (out, out_count, out_type, root, comm, error))
TAKEN(mpi_bcast_, "mpi_bcast_", take_bcast,
      (void *out, int *out_count, int *out_type, int *root, int *comm, int *error),
      (out, out_count, out_type, root, comm, error))
TAKEN(mpi_bcast__, "mpi_bcast__", take_bcast,
      (void *out, int *out_count, int *out_type, int *root, int *comm, int *error),
      (out, out_count, out_type, root, comm, error))
TAKEN(MPI_BCAST, "MPI_BCAST", take_bcast, (void *out, int *out_count, int *out_type, int *root, int *comm, int *error),
      (out, out_count, out_type, root, comm, error))
TAKEN(mpi_bcast_f08_, "mpi_bcast_f08_", take_bcast,
      (void *out, int *out_count, int *out_type, int *root, int *comm, int *error),
      (out, out_count, out_type, root, comm, error))
TAKEN(mpi_reduce, "mpi_reduce", take_reduce,
      (void *in, void *out, int *out_count, int *out_type, int *op, int *root, int *comm, int *error),
      (in, out, out_count, out_type, op, root, comm, error))
TAKEN(mpi_reduce_, "mpi_reduce_", take_reduce,
      (void *in, void *out, int *out_count, int *out_type, int *op, int *root, int *comm, int *error),
      (in, out, out_count, out_type, op, root, comm, error))
TAKEN(mpi_reduce__, "mpi_reduce__", take_reduce,
      (void *in, void *out, int *out_count, int *out_type, int *op, int *root, int *comm, int *error),
      (in, out, out_count, out_type, op, root, comm, error))
TAKEN(MPI_REDUCE, "MPI_REDUCE", take_reduce,
      (void *in, void *out, int *out_count, int *out_type, int *op, int *root, int *comm, int *error),
      (in, out, out_count, out_type, op, root, comm, error))
TAKEN(mpi_reduce_f08_, "mpi_reduce_f08_", take_reduce,
      (void *in, void *out, int *out_count, int *out_type, int *op, int *root, int *comm, int *error),
      (in, out, out_count, out_type, op, root, comm, error))
TAKEN(mpi_alltoall, "mpi_alltoall", take_alltoall,
      (void *in, int *in_count, int *in_type, void *out, int *out_count, int *out_type, int *comm, int *error),
      (in, in_count, in_type, out, out_count, out_type, comm, error))
TAKEN(mpi_alltoall_, "mpi_alltoall_", take_alltoall,
      (void *in, int *in_count, int *in_type, void *out, int *out_count, int *out_type, int *comm, int *error),
      (in, in_count, in_type, out, out_count, out_type, comm, error))
TAKEN(mpi_alltoall__, "mpi_alltoall__", take_alltoall,
      (void *in, int *in_count, int *in_type, void *out, int *out_count, int *out_type, int *comm, int *error),
      (in, in_count, in_type, out, out_count, out_type, comm, error))
TAKEN(MPI_ALLTOALL, "MPI_ALLTOALL", take_alltoall,
      (void *in, int *in_count, int *in_type, void *out, int *out_count, int *out_type, int *comm, int *error),
      (in, in_count, in_type, out, out_count, out_type, comm, error))
TAKEN(mpi_alltoall_f08_, "mpi_alltoall_f08_", take_alltoall,
      (void *in, int *in_count, int *in_type, void *out, int *out_count, int *out_type, int *comm, int *error),
      (in, in_count, in_type, out, out_count, out_type, comm, error))
TAKEN(mpi_alltoallv, "mpi_alltoallv", take_alltoallv,
      (void *in, int *in_counts, int *in_displacements, int *in_type, void *out, int *out_counts,
       int *out_displacements, int *out_type, int *comm, int *error),
      (in, in_counts, in_displacements, in_type, out, out_counts, out_displacements, out_type, comm, error))
TAKEN(mpi_alltoallv_, "mpi_alltoallv_", take_alltoallv,
      (void *in, int *in_counts, int *in_displacements, int *in_type, void *out, int *out_counts,
       int *out_displacements, int *out_type, int *comm, int *error),
      (in, in_counts, in_displacements, in_type, out, out_counts, out_displacements, out_type, comm, error))
TAKEN(mpi_alltoallv__, "mpi_alltoallv__", take_alltoallv,
      (void *in, int *in_counts, int *in_displacements, int *in_type, void *out, int *out_counts,
       int *out_displacements, int *out_type, int *comm, int *error),
      (in, in_counts, in_displacements, in_type, out, out_counts, out_displacements, out_type, comm, error))
TAKEN(MPI_ALLTOALLV, "MPI_ALLTOALLV", take_alltoallv,
      (void *in, int *in_counts, int *in_displacements, int *in_type, void *out, int *out_counts,
       int *out_displacements, int *out_type, int *comm, int *error),
      (in, in_counts, in_displacements, in_type, out, out_counts, out_displacements, out_type, comm, error))
TAKEN(mpi_alltoallv_f08_, "mpi_alltoallv_f08_", take_alltoallv,
      (void *in, int *in_counts, int *in_displacements, int *in_type, void *out, int *out_counts,
       int *out_displacements, int *out_type, int *comm, int *error),
      (in, in_counts, in_displacements, in_type, out, out_counts, out_displacements, out_type, comm, error))
TAKEN(mpi_barrier, "mpi_barrier", fsdpi_take_barrier, (int *comm, int *error), (comm, error))
TAKEN(mpi_barrier_, "mpi_barrier_", fsdpi_take_barrier, (int *comm, int *error), (comm, error))
TAKEN(mpi_barrier__, "mpi_barrier__", fsdpi_take_barrier, (int *comm, int *error), (comm, error))
TAKEN(MPI_BARRIER, "MPI_BARRIER", fsdpi_take_barrier, (int *comm, int *error), (comm, error))
TAKEN(mpi_barrier_f08_, "mpi_barrier_f08_", fsdpi_take_barrier, (int *comm, int *error), (comm, error))

COUNTED(mpi_iallgather, "mpi_iallgather", FSDPI_IALLGATHER, ADDRESSES_9)
COUNTED(mpi_iallgather_, "mpi_iallgather_", FSDPI_IALLGATHER, ADDRESSES_9)
COUNTED(mpi_iallgather__, "mpi_iallgather__", FSDPI_IALLGATHER, ADDRESSES_9)
COUNTED(MPI_IALLGATHER, "MPI_IALLGATHER", FSDPI_IALLGATHER, ADDRESSES_9)
COUNTED(mpi_iallgather_f08_, "mpi_iallgather_f08_", FSDPI_IALLGATHER, ADDRESSES_9)
COUNTED(mpi_allgather_init, "mpi_allgather_init", FSDPI_PERSISTENT, ADDRESSES_10)
COUNTED(mpi_allgather_init_, "mpi_allgather_init_", FSDPI_PERSISTENT, ADDRESSES_10)
COUNTED(mpi_allgather_init__, "mpi_allgather_init__", FSDPI_PERSISTENT, ADDRESSES_10)
COUNTED(MPI_ALLGATHER_INIT, "MPI_ALLGATHER_INIT", FSDPI_PERSISTENT, ADDRESSES_10)
COUNTED(mpi_allgather_init_f08_, "mpi_allgather_init_f08_", FSDPI_PERSISTENT, ADDRESSES_10)
COUNTED(mpi_iallgatherv, "mpi_iallgatherv", FSDPI_IALLGATHERV, ADDRESSES_10)
COUNTED(mpi_iallgatherv_, "mpi_iallgatherv_", FSDPI_IALLGATHERV, ADDRESSES_10)
COUNTED(mpi_iallgatherv__, "mpi_iallgatherv__", FSDPI_IALLGATHERV, ADDRESSES_10)
COUNTED(MPI_IALLGATHERV, "MPI_IALLGATHERV", FSDPI_IALLGATHERV, ADDRESSES_10)
COUNTED(mpi_iallgatherv_f08_, "mpi_iallgatherv_f08_", FSDPI_IALLGATHERV, ADDRESSES_10)
COUNTED(mpi_allgatherv_init, "mpi_allgatherv_init", FSDPI_PERSISTENT, ADDRESSES_11)
COUNTED(mpi_allgatherv_init_, "mpi_allgatherv_init_", FSDPI_PERSISTENT, ADDRESSES_11)
COUNTED(mpi_allgatherv_init__, "mpi_allgatherv_init__", FSDPI_PERSISTENT, ADDRESSES_11)
COUNTED(MPI_ALLGATHERV_INIT, "MPI_ALLGATHERV_INIT", FSDPI_PERSISTENT, ADDRESSES_11)
COUNTED(mpi_allgatherv_init_f08_, "mpi_allgatherv_init_f08_", FSDPI_PERSISTENT, ADDRESSES_11)
COUNTED(mpi_iallreduce, "mpi_iallreduce", FSDPI_IALLREDUCE, ADDRESSES_8)
COUNTED(mpi_iallreduce_, "mpi_iallreduce_", FSDPI_IALLREDUCE, ADDRESSES_8)
COUNTED(mpi_iallreduce__, "mpi_iallreduce__", FSDPI_IALLREDUCE, ADDRESSES_8)
COUNTED(MPI_IALLREDUCE, "MPI_IALLREDUCE", FSDPI_IALLREDUCE, ADDRESSES_8)
COUNTED(mpi_iallreduce_f08_, "mpi_iallreduce_f08_", FSDPI_IALLREDUCE, ADDRESSES_8)
COUNTED(mpi_allreduce_init, "mpi_allreduce_init", FSDPI_PERSISTENT, ADDRESSES_9)
COUNTED(mpi_allreduce_init_, "mpi_allreduce_init_", FSDPI_PERSISTENT, ADDRESSES_9)
COUNTED(mpi_allreduce_init__, "mpi_allreduce_init__", FSDPI_PERSISTENT, ADDRESSES_9)
COUNTED(MPI_ALLREDUCE_INIT, "MPI_ALLREDUCE_INIT", FSDPI_PERSISTENT, ADDRESSES_9)
COUNTED(mpi_allreduce_init_f08_, "mpi_allreduce_init_f08_", FSDPI_PERSISTENT, ADDRESSES_9)
COUNTED(mpi_ireduce_scatter, "mpi_ireduce_scatter", FSDPI_IREDUCE_SCATTER, ADDRESSES_8)
COUNTED(mpi_ireduce_scatter_, "mpi_ireduce_scatter_", FSDPI_IREDUCE_SCATTER, ADDRESSES_8)
COUNTED(mpi_ireduce_scatter__, "mpi_ireduce_scatter__", FSDPI_IREDUCE_SCATTER, ADDRESSES_8)
COUNTED(MPI_IREDUCE_SCATTER, "MPI_IREDUCE_SCATTER", FSDPI_IREDUCE_SCATTER, ADDRESSES_8)
COUNTED(mpi_ireduce_scatter_f08_, "mpi_ireduce_scatter_f08_", FSDPI_IREDUCE_SCATTER, ADDRESSES_8)
COUNTED(mpi_reduce_scatter_init, "mpi_reduce_scatter_init", FSDPI_PERSISTENT, ADDRESSES_9)
COUNTED(mpi_reduce_scatter_init_, "mpi_reduce_scatter_init_", FSDPI_PERSISTENT, ADDRESSES_9)
COUNTED(mpi_reduce_scatter_init__, "mpi_reduce_scatter_init__", FSDPI_PERSISTENT, ADDRESSES_9)
COUNTED(MPI_REDUCE_SCATTER_INIT, "MPI_REDUCE_SCATTER_INIT", FSDPI_PERSISTENT, ADDRESSES_9)
COUNTED(mpi_reduce_scatter_init_f08_, "mpi_reduce_scatter_init_f08_", FSDPI_PERSISTENT, ADDRESSES_9)
COUNTED(mpi_ireduce_scatter_block, "mpi_ireduce_scatter_block", FSDPI_IREDUCE_SCATTER_BLOCK, ADDRESSES_8)
COUNTED(mpi_ireduce_scatter_block_, "mpi_ireduce_scatter_block_", FSDPI_IREDUCE_SCATTER_BLOCK, ADDRESSES_8)
COUNTED(mpi_ireduce_scatter_block__, "mpi_ireduce_scatter_block__", FSDPI_IREDUCE_SCATTER_BLOCK, ADDRESSES_8)
COUNTED(MPI_IREDUCE_SCATTER_BLOCK, "MPI_IREDUCE_SCATTER_BLOCK", FSDPI_IREDUCE_SCATTER_BLOCK, ADDRESSES_8)
COUNTED(mpi_ireduce_scatter_block_f08_, "mpi_ireduce_scatter_block_f08_", FSDPI_IREDUCE_SCATTER_BLOCK, ADDRESSES_8)
COUNTED(mpi_reduce_scatter_block_init, "mpi_reduce_scatter_block_init", FSDPI_PERSISTENT, ADDRESSES_9)
COUNTED(mpi_reduce_scatter_block_init_, "mpi_reduce_scatter_block_init_", FSDPI_PERSISTENT, ADDRESSES_9)
COUNTED(mpi_reduce_scatter_block_init__, "mpi_reduce_scatter_block_init__", FSDPI_PERSISTENT, ADDRESSES_9)
COUNTED(MPI_REDUCE_SCATTER_BLOCK_INIT, "MPI_REDUCE_SCATTER_BLOCK_INIT", FSDPI_PERSISTENT, ADDRESSES_9)
COUNTED(mpi_reduce_scatter_block_init_f08_, "mpi_reduce_scatter_block_init_f08_", FSDPI_PERSISTENT, ADDRESSES_9)
COUNTED(mpi_ibcast, "mpi_ibcast", FSDPI_IBCAST, ADDRESSES_7)
COUNTED(mpi_ibcast_, "mpi_ibcast_", FSDPI_IBCAST, ADDRESSES_7)
COUNTED(mpi_ibcast__, "mpi_ibcast__", FSDPI_IBCAST, ADDRESSES_7)
COUNTED(MPI_IBCAST, "MPI_IBCAST", FSDPI_IBCAST, ADDRESSES_7)
COUNTED(mpi_ibcast_f08_, "mpi_ibcast_f08_", FSDPI_IBCAST, ADDRESSES_7)
COUNTED(mpi_bcast_init, "mpi_bcast_init", FSDPI_PERSISTENT, ADDRESSES_8)
COUNTED(mpi_bcast_init_, "mpi_bcast_init_", FSDPI_PERSISTENT, ADDRESSES_8)
COUNTED(mpi_bcast_init__, "mpi_bcast_init__", FSDPI_PERSISTENT, ADDRESSES_8)
COUNTED(MPI_BCAST_INIT, "MPI_BCAST_INIT", FSDPI_PERSISTENT, ADDRESSES_8)
COUNTED(mpi_bcast_init_f08_, "mpi_bcast_init_f08_", FSDPI_PERSISTENT, ADDRESSES_8)
COUNTED(mpi_ireduce, "mpi_ireduce", FSDPI_IREDUCE, ADDRESSES_9)
COUNTED(mpi_ireduce_, "mpi_ireduce_", FSDPI_IREDUCE, ADDRESSES_9)
COUNTED(mpi_ireduce__, "mpi_ireduce__", FSDPI_IREDUCE, ADDRESSES_9)
COUNTED(MPI_IREDUCE, "MPI_IREDUCE", FSDPI_IREDUCE, ADDRESSES_9)
COUNTED(mpi_ireduce_f08_, "mpi_ireduce_f08_", FSDPI_IREDUCE, ADDRESSES_9)
COUNTED(mpi_reduce_init, "mpi_reduce_init", FSDPI_PERSISTENT, ADDRESSES_10)
COUNTED(mpi_reduce_init_, "mpi_reduce_init_", FSDPI_PERSISTENT, ADDRESSES_10)
COUNTED(mpi_reduce_init__, "mpi_reduce_init__", FSDPI_PERSISTENT, ADDRESSES_10)
COUNTED(MPI_REDUCE_INIT, "MPI_REDUCE_INIT", FSDPI_PERSISTENT, ADDRESSES_10)
COUNTED(mpi_reduce_init_f08_, "mpi_reduce_init_f08_", FSDPI_PERSISTENT, ADDRESSES_10)
COUNTED(mpi_ialltoall, "mpi_ialltoall", FSDPI_IALLTOALL, ADDRESSES_9)
COUNTED(mpi_ialltoall_, "mpi_ialltoall_", FSDPI_IALLTOALL, ADDRESSES_9)
COUNTED(mpi_ialltoall__, "mpi_ialltoall__", FSDPI_IALLTOALL, ADDRESSES_9)
COUNTED(MPI_IALLTOALL, "MPI_IALLTOALL", FSDPI_IALLTOALL, ADDRESSES_9)
COUNTED(mpi_ialltoall_f08_, "mpi_ialltoall_f08_", FSDPI_IALLTOALL, ADDRESSES_9)
COUNTED(mpi_alltoall_init, "mpi_alltoall_init", FSDPI_PERSISTENT, ADDRESSES_10)
COUNTED(mpi_alltoall_init_, "mpi_alltoall_init_", FSDPI_PERSISTENT, ADDRESSES_10)
COUNTED(mpi_alltoall_init__, "mpi_alltoall_init__", FSDPI_PERSISTENT, ADDRESSES_10)
COUNTED(MPI_ALLTOALL_INIT, "MPI_ALLTOALL_INIT", FSDPI_PERSISTENT, ADDRESSES_10)
COUNTED(mpi_alltoall_init_f08_, "mpi_alltoall_init_f08_", FSDPI_PERSISTENT, ADDRESSES_10)
COUNTED(mpi_ialltoallv, "mpi_ialltoallv", FSDPI_IALLTOALLV, ADDRESSES_11)
COUNTED(mpi_ialltoallv_, "mpi_ialltoallv_", FSDPI_IALLTOALLV, ADDRESSES_11)
COUNTED(mpi_ialltoallv__, "mpi_ialltoallv__", FSDPI_IALLTOALLV, ADDRESSES_11)
COUNTED(MPI_IALLTOALLV, "MPI_IALLTOALLV", FSDPI_IALLTOALLV, ADDRESSES_11)
COUNTED(mpi_ialltoallv_f08_, "mpi_ialltoallv_f08_", FSDPI_IALLTOALLV, ADDRESSES_11)
COUNTED(mpi_alltoallv_init, "mpi_alltoallv_init", FSDPI_PERSISTENT, ADDRESSES_12)
COUNTED(mpi_alltoallv_init_, "mpi_alltoallv_init_", FSDPI_PERSISTENT, ADDRESSES_12)
COUNTED(mpi_alltoallv_init__, "mpi_alltoallv_init__", FSDPI_PERSISTENT, ADDRESSES_12)
COUNTED(MPI_ALLTOALLV_INIT, "MPI_ALLTOALLV_INIT", FSDPI_PERSISTENT, ADDRESSES_12)
COUNTED(mpi_alltoallv_init_f08_, "mpi_alltoallv_init_f08_", FSDPI_PERSISTENT, ADDRESSES_12)
COUNTED(mpi_ibarrier, "mpi_ibarrier", FSDPI_IBARRIER, ADDRESSES_3)
COUNTED(mpi_ibarrier_, "mpi_ibarrier_", FSDPI_IBARRIER, ADDRESSES_3)
COUNTED(mpi_ibarrier__, "mpi_ibarrier__", FSDPI_IBARRIER, ADDRESSES_3)
COUNTED(MPI_IBARRIER, "MPI_IBARRIER", FSDPI_IBARRIER, ADDRESSES_3)
COUNTED(mpi_ibarrier_f08_, "mpi_ibarrier_f08_", FSDPI_IBARRIER, ADDRESSES_3)
COUNTED(mpi_barrier_init, "mpi_barrier_init", FSDPI_PERSISTENT, ADDRESSES_4)
COUNTED(mpi_barrier_init_, "mpi_barrier_init_", FSDPI_PERSISTENT, ADDRESSES_4)
COUNTED(mpi_barrier_init__, "mpi_barrier_init__", FSDPI_PERSISTENT, ADDRESSES_4)
COUNTED(MPI_BARRIER_INIT, "MPI_BARRIER_INIT", FSDPI_PERSISTENT, ADDRESSES_4)
COUNTED(mpi_barrier_init_f08_, "mpi_barrier_init_f08_", FSDPI_PERSISTENT, ADDRESSES_4)

BEGINS(mpi_init, "mpi_init", ADDRESSES_1)
BEGINS(mpi_init_, "mpi_init_", ADDRESSES_1)
BEGINS(mpi_init__, "mpi_init__", ADDRESSES_1)
BEGINS(MPI_INIT, "MPI_INIT", ADDRESSES_1)
BEGINS(mpi_init_f08_, "mpi_init_f08_", ADDRESSES_1)
BEGINS(mpi_init_thread, "mpi_init_thread", ADDRESSES_3)
BEGINS(mpi_init_thread_, "mpi_init_thread_", ADDRESSES_3)
BEGINS(mpi_init_thread__, "mpi_init_thread__", ADDRESSES_3)
BEGINS(MPI_INIT_THREAD, "MPI_INIT_THREAD", ADDRESSES_3)
BEGINS(mpi_init_thread_f08_, "mpi_init_thread_f08_", ADDRESSES_3)
ENDS(mpi_finalize, "mpi_finalize", ADDRESSES_1)
ENDS(mpi_finalize_, "mpi_finalize_", ADDRESSES_1)
ENDS(mpi_finalize__, "mpi_finalize__", ADDRESSES_1)
ENDS(MPI_FINALIZE, "MPI_FINALIZE", ADDRESSES_1)
ENDS(mpi_finalize_f08_, "mpi_finalize_f08_", ADDRESSES_1)
