/**
 * @file
 * Rows that are known by numbers go to the ranks that write them.
 */
#ifndef FSDPI_SORT_ROWS_H
#define FSDPI_SORT_ROWS_H

#include "shard/checkpoint/arrays/keyed.h"

/**
 * Moves all rows that the ranks have said they have, for a save, and sorts them: a rank has those of a stretch of numbers then, and
 * they lie where it writes them in the file. Collective. FSDP_ERR_ARG: two rows have one number, which is named;
 * FSDP_ERR_STATE: a rank has not said what it has; FSDP_ERR_MEMORY. The same on all ranks.
 * Cost: three agreements, two allreduces of up to 16 bytes, an alltoall and an allgather of 8 bytes per rank, and an alltoallv for each
 * column; what a rank holds for the time grows with its rows, and by 40 bytes per rank.
 */
fsdp_status fsdpi_rows_sort(fsdp_context *ctx, fsdpi_keyed *keyed, const char *function);

#endif
