/**
 * @file
 * Counts what a rank asks of MPI, by functions in front of MPI's own: MPI's profiling interface. They come before those of the
 * MPI library where a program is linked with this file, so that all calls of the program and of what is linked into it are
 * counted, of any thread and on any communicator.
 *
 * Messages that MPI itself sends in its collectives are not counted; the calls of these are.
 */
#ifndef FSDP_TESTS_MPI_COUNTS_H
#define FSDP_TESTS_MPI_COUNTS_H

#include <stdint.h>

/** Ranks up to this have counts of their own. */
enum { MPI_COUNTS_RANKS = 256 };

typedef struct mpi_counts {
    uint64_t messages, bytes; /* sent */
    uint64_t receives;        /* posted */
    uint64_t longest;         /* BYTES of a message sent */
    uint64_t collectives;     /* calls */
    uint64_t under_way;       /* requests now */
    uint64_t most_under_way;  /* requests at once */
} mpi_counts;

typedef struct mpi_counts_of_peer {
    uint64_t messages, bytes; /* sent to it */
    uint64_t receives;        /* posted for what it sends */
} mpi_counts_of_peer;

/** Starts anew, but for the requests that are under way. */
void mpi_counts_reset(void);

mpi_counts mpi_counts_now(void);

/** Of one rank, by its number in the communicator that was used. */
mpi_counts_of_peer mpi_counts_with(int rank);

#endif
