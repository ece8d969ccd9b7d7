/**
 * @file
 * The lock of a run's folder: one program at a time saves there. By flock(2) of ".lock", which the kernel gives back when a
 * program ends in any way; where that is not to be had, or is known on one host alone, by the file ".owner": see
 * shard/checkpoint/folder/owner.h. Who uses one looks for the other too.
 */
#ifndef FSDPI_FOLDER_LOCK_H
#define FSDPI_FOLDER_LOCK_H

#include <stdbool.h>

#include "fsdp/config.h"
#include "shard/checkpoint/folder/owner.h"
#include "shard/checkpoint/format/problem.h"

typedef struct fsdpi_folder_lock {
    int         fd;       /* of ".lock"; -1: not open */
    bool        alone;    /* nobody else saves there: what is not finished there is left over */
    int         no_flock; /* why flock(2) could not be had, if its file system has none: errno; 0 */
    fsdpi_owner owner;
} fsdpi_folder_lock;

/**
 * FSDP_ERR_STATE, with who has it, where another program does; FSDP_ERR_IO. FSDP_CHECKPOINT_LOCK_NONE takes none.
 * @param[out] lock  stays where it is until it is released
 */
fsdp_status fsdpi_folder_lock_take(fsdpi_folder_lock *lock, const char *folder, const char *job,
                                   fsdp_checkpoint_lock wish, fsdpi_problem *problem);

/** Gives it back. Where none is held does nothing. */
void fsdpi_folder_lock_release(fsdpi_folder_lock *lock);

/** In a process that fork() has made: the other one keeps it. */
void fsdpi_folder_lock_forget(fsdpi_folder_lock *lock);

#endif
