/**
 * @file
 * MPI's collectives for what opens and closes, where the data is a few words: as MPI's blocking ones, but the wait gives
 * the core away and then sleeps. In its blocking calls an MPI may spin (MPICH does), and where a node has more ranks than
 * cores, each of them then costs time slices of the scheduler: 8 ms for a barrier of 3 ranks on 2 cores.
 *
 * All return MPI's code, and MPI_ERR_PENDING where other ranks have not come within `timeout_s` seconds (0: no limit).
 * FSDPI_TRY_MPI takes that for FSDP_ERR_TIMEOUT.
 */
#ifndef FSDPI_YIELDING_H
#define FSDPI_YIELDING_H

#include <mpi.h>

/** As MPI_Wait(). After MPI_ERR_PENDING the request and its memory are still MPI's. */
int fsdpi_mpi_wait(MPI_Request *request, int timeout_s);

/** In place. */
int fsdpi_mpi_allreduce(void *data, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, int timeout_s);

/** `count` from each rank, `count` times the size into `all`. */
int fsdpi_mpi_allgather(const void *mine, void *all, int count, MPI_Datatype type, MPI_Comm comm, int timeout_s);

int fsdpi_mpi_broadcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm, int timeout_s);

int fsdpi_mpi_barrier(MPI_Comm comm, int timeout_s);

int fsdpi_mpi_duplicate(MPI_Comm comm, MPI_Comm *copy, int timeout_s);

#endif
