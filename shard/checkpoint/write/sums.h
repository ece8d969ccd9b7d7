/**
 * @file
 * The chunks of all ranks on their way to rank 0, the one that needs them: by a file in the partial folder, in which each rank
 * has a place of its own. Nothing is gathered.
 */
#ifndef FSDPI_SUMS_H
#define FSDPI_SUMS_H

#include "shard/checkpoint/write/checkpoint.h"

/** Rank 0, before all others: makes the file. */
fsdp_status fsdpi_sums_make(fsdp_checkpoint *checkpoint);

/** Every rank: writes what fsdpi_writer_write() has left in the writer. */
fsdp_status fsdpi_sums_write(fsdp_checkpoint *checkpoint);

/** Rank 0, behind all others: all of them, by their place in the files, which the caller frees; and removes the file. */
fsdp_status fsdpi_sums_take(fsdp_checkpoint *checkpoint, fsdpi_file_chunk **sums);

#endif
