/**
 * @file
 * The folder that checkpoints are saved in: its lock, its `latest`, and how a checkpoint appears and goes. For one process
 * at a time, rank 0; nothing here communicates or needs a context, so that any thread may call it.
 *
 * A folder is known by its path: file systems that several hosts share do not keep a descriptor of it valid for long.
 * Order of what happens: files are written into ".step-000000500.partial" and synced, the folder is renamed to
 * "step-000000500", its parent synced, and `latest` replaced in the same way. What a crash may leave is a partial folder,
 * which the next save removes, or a whole one that is not `latest` yet.
 */
#ifndef FSDPI_FOLDER_H
#define FSDPI_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "shard/checkpoint/format/problem.h"

/** BYTES of the name of a checkpoint in its folder. */
#define FSDPI_FOLDER_NAME_BYTES 64

/** BYTES of any path in here: of a folder, of a checkpoint, of a file. */
#define FSDPI_FOLDER_PATH_BYTES 1280

/** "FOLDER/NAME", into FSDPI_FOLDER_PATH_BYTES. */
void fsdpi_path_join(char *path, const char *folder, const char *name);

/**
 * Makes the folder if need be, and takes its lock. FSDP_ERR_IO; FSDP_ERR_STATE where it is taken.
 * @param[out] lock  a descriptor to close, which gives it back, as does the end of the process; -1 after an error
 */
fsdp_status fsdpi_folder_open(const char *folder, int *lock, fsdpi_problem *problem);

/** The checkpoint that `latest` names; "" where there is none. FSDP_ERR_IO, FSDP_ERR_FORMAT. */
fsdp_status fsdpi_folder_latest(const char *folder, char *name, fsdpi_problem *problem);

/** The name of the folder that a save writes into, on every rank. */
void fsdpi_folder_name_partial(uint64_t step, char *partial);

/** Removes what interrupted saves have left, and makes the folder that a save writes into. */
fsdp_status fsdpi_folder_begin(const char *folder, const char *partial, fsdpi_problem *problem);

/** Makes the files in a partial folder, which are on the disk already, a checkpoint, and the latest one. */
fsdp_status fsdpi_folder_commit(const char *folder, uint64_t step, const char *partial, char *name,
                                fsdpi_problem *problem);

/** Removes a partial folder with its files, as far as possible. */
void fsdpi_folder_abandon(const char *folder, const char *partial);

/**
 * Removes checkpoints up to the step of `keep`, which is the latest: all but the last `keep_last`, and those whose step is a
 * multiple of `keep_every` (0: none). Later steps, of a run that has been gone back from, are left alone. `keep_last` 0 removes
 * none. One that cannot be removed stays.
 */
void fsdpi_folder_prune(const char *folder, size_t keep_last, size_t keep_every, const char *keep);

/** Writes a whole file that is on the disk when this returns. */
fsdp_status fsdpi_write_file(const char *path, const void *bytes, size_t n_bytes, fsdpi_problem *problem);

/** Syncs a folder, or a file that can be read. */
fsdp_status fsdpi_sync_path(const char *path, fsdpi_problem *problem);

#endif
