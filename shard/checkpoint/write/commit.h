/**
 * @file
 * What makes the files of all ranks a checkpoint.
 */
#ifndef FSDPI_COMMIT_H
#define FSDPI_COMMIT_H

#include "shard/checkpoint/write/checkpoint.h"

/** "FOLDER/NAME" of the partial folder, into FSDPI_FOLDER_PATH_BYTES. */
void fsdpi_checkpoint_partial_path(const fsdp_checkpoint *checkpoint, char *path);

/** Logs once, on rank 0, that the folder's file system has been found not to sync folders. */
void fsdpi_checkpoint_tell_unsynced(fsdp_checkpoint *checkpoint);

/** Rank 0's second piece of work: from the sums of all ranks to the latest checkpoint. */
fsdp_status fsdpi_checkpoint_commit(fsdp_checkpoint *checkpoint);

#endif
