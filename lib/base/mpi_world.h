/**
 * @file
 * Whether MPI's world exists: MPI_COMM_WORLD and MPI_COMM_SELF are there between MPI_Init() and MPI_Finalize(). A process
 * that uses MPI through sessions alone (MPI 4) has neither, and a communicator all the same.
 */
#ifndef FSDPI_MPI_WORLD_H
#define FSDPI_MPI_WORLD_H

#include <mpi.h>
#include <stdbool.h>

static inline bool fsdpi_mpi_has_world(void)
{
    int begun = 0, ended = 0;

    (void)MPI_Initialized(&begun);
    (void)MPI_Finalized(&ended);
    return begun && !ended;
}

#endif
