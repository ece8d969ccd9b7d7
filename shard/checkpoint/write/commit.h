/**
 * @file
 * What makes the files of all ranks a checkpoint.
 */
#ifndef FSDPI_COMMIT_H
#define FSDPI_COMMIT_H

#include "shard/checkpoint/cache/meta.h"
#include "shard/checkpoint/write/checkpoint.h"

/** "FOLDER/NAME" of the partial folder, into FSDPI_FOLDER_PATH_BYTES. */
void fsdpi_checkpoint_partial_path(const fsdp_checkpoint *checkpoint, char *path);

/** The files that it has, numbered as everywhere: which, and what they are made with. None is the caller's. */
size_t fsdpi_checkpoint_count_files(const fsdp_checkpoint *checkpoint);
void   fsdpi_checkpoint_list_files(const fsdp_checkpoint *checkpoint, fsdpi_cached_file *files);

/** What the files of all ranks need to become a checkpoint. */
typedef struct fsdpi_commit {
    const char              *folder;
    fsdpi_state             *state; /* without checksums */
    size_t                   n_files;
    const fsdpi_cached_file *files;
    size_t                   n_sums; /* that ranks have written: see shard/checkpoint/write/sums.h */
} fsdpi_commit;

/** Writes checksums and state. */
fsdp_status fsdpi_commit_write(const fsdpi_commit *commit, fsdpi_problem *problem);

/** Logs once, on rank 0, that the folder's file system has been found not to sync folders. */
void fsdpi_checkpoint_tell_unsynced(fsdp_checkpoint *checkpoint);

/** Rank 0's second piece of work: from the sums of all ranks to the latest checkpoint. */
fsdp_status fsdpi_checkpoint_commit(fsdp_checkpoint *checkpoint);

#endif
