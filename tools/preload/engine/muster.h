/**
 * @file
 * Whether all ranks of the job have the drop-in, and the same one.
 */
#ifndef FSDPI_PRELOAD_MUSTER_H
#define FSDPI_PRELOAD_MUSTER_H

#include <stdbool.h>

/**
 * Collective over those ranks of MPI_COMM_WORLD that have the drop-in. Every rank sends rank 0 a message and gets an answer; one
 * that does not come within ten seconds, or FSDP_TIMEOUT_S if that is less, has none. Rank 0 says who that is.
 *
 * @return whether all have it: the same on every rank.
 */
bool fsdpi_muster(int rank, int size);

#endif
