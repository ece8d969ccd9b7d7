/**
 * @file
 * Files as what a model, or an optimizer, is loaded from: which of their tensors is which of its own, the check of what this
 * rank needs of them, and the reading of it. Local.
 */
#ifndef FSDPI_SOURCE_H
#define FSDPI_SOURCE_H

#include "fsdp/checkpoint.h"
#include "shard/checkpoint/common/parts.h"
#include "shard/checkpoint/format/checksums.h"
#include "shard/checkpoint/format/tensor_files.h"

/** What does not fit: how many, and the first. */
typedef struct fsdpi_misfits {
    size_t missing, extra, mis_shaped;
    char   first[FSDPI_PROBLEM_BYTES / 2];
} fsdpi_misfits;

/** Prints, on rank 0, one thing that does not fit, and keeps it if it is the first. Its `text` is printable already. */
void fsdpi_misfit_tell(const fsdp_context *ctx, const char *function, const fsdpi_problem *problem,
                       fsdpi_misfits *misfits);

/** "[2, 3]" */
void fsdpi_describe_shape(const fsdpi_tensor_info *info, char *text, size_t size);

typedef struct fsdpi_source {
    fsdp_model                 *model;
    const char                 *name; /* of the model in the checkpoint, "" for none; for what is printed */
    fsdpi_parts                 parts;
    fsdpi_tensor_files          files;
    const fsdpi_placed_tensor **placed; /* of each part; NULL: it stays as it is */
} fsdpi_source;

/**
 * Finds the tensors of `source->files`, which is open, in the model. What does not fit, and is not allowed, is printed, each, by
 * rank 0, and counted.
 *
 * @param[in] values  whether the parts are a model's values, which have other names where they are tied, and renames
 * @return FSDP_OK, whatever fits or not; FSDP_ERR_MEMORY
 */
fsdp_status fsdpi_source_match(fsdpi_source *source, bool values, const fsdp_checkpoint_load_options *options,
                               fsdpi_misfits *misfits, fsdpi_problem *problem);

/** A hash of what the files say of their tensors: the same on ranks that see the same files. */
uint64_t fsdpi_source_fingerprint(const fsdpi_source *source, uint64_t hash);

/** Checks, against their checksums, all chunks that hold headers. `scratch`: FSDPI_READ_BYTES, as in what follows. */
fsdp_status fsdpi_source_verify_headers(const fsdpi_source *source, const fsdpi_checksums *sums, void *scratch,
                                        fsdpi_problem *problem);

/**
 * Checks this rank's share of the chunks that the ranks of its node need, behind fsdpi_source_match(). The shares are of equal
 * bytes, and each in one piece of each file: so a disk is read once, in long stretches, whatever is held where, and the kernel
 * has the bytes when they are read to stay. If all ranks find theirs good, all chunks are.
 */
fsdp_status fsdpi_source_verify(const fsdpi_source *source, const fsdpi_checksums *sums, void *scratch,
                                fsdpi_problem *problem);

/** Reads what this rank holds of every part that is placed, into its place. */
fsdp_status fsdpi_source_read(const fsdpi_source *source, void *scratch, fsdpi_problem *problem);

/** Closes and frees. A source of zeros is allowed. */
void fsdpi_source_close(fsdpi_source *source);

#endif
