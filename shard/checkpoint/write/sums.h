/**
 * @file
 * The chunks of all ranks on their way to rank 0, the one that needs them: by a file in the partial folder, in which each rank
 * has a place of its own. Nothing is gathered.
 */
#ifndef FSDPI_SUMS_H
#define FSDPI_SUMS_H

#include "shard/checkpoint/write/checkpoint.h"

/** The same for any chunks: of `mine` on this rank, how many there are and how many before them. Collective. */
fsdp_status fsdpi_sums_place(fsdp_context *ctx, const char *function, size_t mine, size_t *first, size_t *n);
/** Makes the file in a folder; writes chunks from number `first` on. */
fsdp_status fsdpi_sums_make_in(const char *folder, fsdpi_problem *problem);
fsdp_status fsdpi_sums_write_in(const char *folder, size_t first, const fsdpi_file_chunk *chunks, size_t n,
                                fsdpi_problem *problem);
/**
 * Rank 0, behind all others: all `n_sums` of them, by their place in the files, which the caller frees; and removes the file. Parts
 * of one chunk are joined: `n` are left.
 */
fsdp_status fsdpi_sums_take(const char *folder, size_t n_sums, fsdpi_file_chunk **sums, size_t *n,
                            fsdpi_problem *problem);

/** Counts the chunks of all ranks. Collective; for `function`, the public one that asks. */
fsdp_status fsdpi_sums_count(fsdp_checkpoint *checkpoint, const char *function);

/** Rank 0, before all others: makes the file. */
fsdp_status fsdpi_sums_make(fsdp_checkpoint *checkpoint);

/** Every rank: writes what fsdpi_writer_write() and fsdpi_arrays_write() have left. */
fsdp_status fsdpi_sums_write(fsdp_checkpoint *checkpoint);

#endif
