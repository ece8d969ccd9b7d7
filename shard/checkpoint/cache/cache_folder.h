/**
 * @file
 * The folder of a node in which a run's caches lie, "DIR/fsdp-cache-USER-KEY": DIR is FSDP_CHECKPOINT_CACHE, and KEY stands for the
 * path of the run's folder, so that every attempt of a run finds it. Files there: "own-RANK-SLOT" and "copy-RANK-SLOT", of which
 * RANK is the owner of what is in it. Needs no context.
 */
#ifndef FSDPI_CACHE_FOLDER_H
#define FSDPI_CACHE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard/checkpoint/format/folder.h"
#include "shard/checkpoint/format/problem.h"

/** The folder for a run by a hash of its path, into FSDPI_FOLDER_PATH_BYTES. FSDP_ERR_ARG: `dir` is too long. */
fsdp_status fsdpi_cache_folder_name(const char *dir, uint64_t key, char *path, fsdpi_problem *problem);

/** Makes it, if it is not there, for this user alone. FSDP_ERR_IO: it cannot be made, or is not this user's. */
fsdp_status fsdpi_cache_folder_make(const char *path, fsdpi_problem *problem);

/** The name of a file in it; a copy is of a rank of another node. */
void fsdpi_cache_folder_file(const char *folder, bool is_copy, int rank, int slot, char *path);

/**
 * The names of the files in it, sorted, of which the caller frees each and the list. None where there is no such folder.
 * FSDP_ERR_IO, FSDP_ERR_MEMORY.
 */
fsdp_status fsdpi_cache_folder_list(const char *folder, char ***names, size_t *n, fsdpi_problem *problem);

/** Whether what lies there takes memory: its file system is tmpfs or the like. */
bool fsdpi_cache_folder_is_memory(const char *folder);

#endif
