/**
 * @file
 * A folder of checkpoints as every program sees it: paths, the file `latest`, and writing what has to be on the disk.
 */
#ifndef FSDPI_FOLDER_H
#define FSDPI_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "shard/checkpoint/format/problem.h"

/** BYTES of the name of a checkpoint in its folder. */
#define FSDPI_FOLDER_NAME_BYTES 64

/** The file that names the last checkpoint. */
#define FSDPI_LATEST_FILE "latest"

/** BYTES of any path in here: of a folder, of a checkpoint, of a file. */
#define FSDPI_FOLDER_PATH_BYTES 1280

/** "FOLDER/NAME", into FSDPI_FOLDER_PATH_BYTES. */
void fsdpi_path_join(char *path, const char *folder, const char *name);

/** The checkpoint that `latest` names; "" where there is none. FSDP_ERR_IO, FSDP_ERR_FORMAT. */
fsdp_status fsdpi_folder_latest(const char *folder, char *name, fsdpi_problem *problem);

/** Writes a whole file that is on the disk when this returns. */
fsdp_status fsdpi_write_file(const char *path, const void *bytes, size_t n_bytes, fsdpi_problem *problem);

/** Syncs a file that can be read. */
fsdp_status fsdpi_sync_path(const char *path, fsdpi_problem *problem);

/**
 * Syncs what a folder's names stand for.
 * @param[out] unsupported  errno where its file system does not sync folders, which is no error; else unchanged
 */
fsdp_status fsdpi_sync_folder(const char *path, int *unsupported, fsdpi_problem *problem);

#endif
