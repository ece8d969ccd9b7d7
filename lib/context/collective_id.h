/**
 * @file
 * The numbers of the collectives, for the table of algorithms and for fingerprints.
 */
#ifndef FSDPI_COLLECTIVE_ID_H
#define FSDPI_COLLECTIVE_ID_H

typedef enum fsdpi_collective_id {
    FSDPI_ALLGATHER = 1,
    FSDPI_REDUCE_SCATTER,
    FSDPI_ALLREDUCE,
    FSDPI_BROADCAST,
    FSDPI_REDUCE,
    FSDPI_ALLTOALL,
    FSDPI_BARRIER,
    FSDPI_ALLTOALLV,
    FSDPI_N_COLLECTIVES
} fsdpi_collective_id;

#endif
