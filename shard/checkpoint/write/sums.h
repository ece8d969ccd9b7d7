/**
 * @file
 * The chunks of all ranks on their way to rank 0, the one that needs them: by a file in the partial folder, in which each rank
 * has a place of its own. Nothing is gathered.
 */
#ifndef FSDPI_SUMS_H
#define FSDPI_SUMS_H

#include "shard/checkpoint/write/checkpoint.h"

/** Counts the chunks of all ranks. Collective; for `function`, the public one that asks. */
fsdp_status fsdpi_sums_count(fsdp_checkpoint *checkpoint, const char *function);

/** Rank 0, before all others: makes the file. */
fsdp_status fsdpi_sums_make(fsdp_checkpoint *checkpoint);

/** Every rank: writes what fsdpi_writer_write() and fsdpi_arrays_write() have left. */
fsdp_status fsdpi_sums_write(fsdp_checkpoint *checkpoint);

/**
 * Rank 0, behind all others: all of them, by their place in the files, which the caller frees; and removes the file. Parts of one
 * chunk are joined: `n` are left.
 */
fsdp_status fsdpi_sums_take(fsdp_checkpoint *checkpoint, fsdpi_file_chunk **sums, size_t *n);

#endif
