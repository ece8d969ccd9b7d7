/**
 * @file
 * simulation.safetensors as what the program's arrays are loaded from. Local.
 */
#ifndef FSDPI_READ_ARRAYS_H
#define FSDPI_READ_ARRAYS_H

#include "shard/checkpoint/arrays/arrays.h"
#include "shard/checkpoint/read/source.h"

typedef struct fsdpi_array_source {
    const fsdpi_arrays *arrays; /* NULL: none are loaded */
    fsdpi_tensor_files  files;
} fsdpi_array_source;

/** Opens the file, where the checkpoint in `folder` has one. */
fsdp_status fsdpi_array_source_open(fsdpi_array_source *source, const fsdpi_checksums *sums, const char *folder,
                                    fsdpi_problem *problem);

/** As fsdpi_source_match(): counts and prints what does not fit. */
void fsdpi_array_source_match(const fsdpi_array_source *source, const fsdp_checkpoint_load_options *options,
                              fsdpi_misfits *misfits);

/** Memory for this rank's share of rows that are known by numbers: as many as the file has. */
fsdp_status fsdpi_array_source_make_room(const fsdpi_array_source *source, fsdpi_problem *problem);

/** Checks the chunks of the header. */
fsdp_status fsdpi_array_source_verify_header(const fsdpi_array_source *source, const fsdpi_checksums *sums,
                                             void *scratch, fsdpi_problem *problem);

/** Checks this rank's share of all chunks of the file: all ranks' shares are in one stretch each, and together all of it. */
fsdp_status fsdpi_array_source_verify(const fsdpi_array_source *source, const fsdpi_checksums *sums, void *scratch,
                                      fsdpi_problem *problem);

/** Reads what this rank holds of every array that is there and fits. */
fsdp_status fsdpi_array_source_read(const fsdpi_array_source *source, void *scratch, fsdpi_problem *problem);

/** A hash of what the file says of its tensors. */
uint64_t fsdpi_array_source_fingerprint(const fsdpi_array_source *source, uint64_t hash);

void fsdpi_array_source_close(fsdpi_array_source *source);

#endif
