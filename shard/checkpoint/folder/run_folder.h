/**
 * @file
 * The folder that a run saves checkpoints in: who may save there, and how a checkpoint appears and goes. What touches files is
 * for one process at a time, rank 0; nothing here communicates or needs a context, so that any thread may call it.
 *
 * A folder is known by its absolute path: the program may change its working folder, and file systems that several hosts share do
 * not keep a descriptor of a folder valid for long. Order of what happens: files are written into ".step-000000500.JOB.partial" and
 * synced, that folder is synced and renamed to "step-000000500", its parent synced, and `latest` replaced in the same way. A
 * checkpoint goes the way it came: it is renamed before its files are removed. So what a crash may leave is a partial folder, which
 * the next save removes, or a whole one that is not `latest` yet. Directly before each rename the token is looked at
 * (shard/checkpoint/folder/token.h).
 */
#ifndef FSDPI_RUN_FOLDER_H
#define FSDPI_RUN_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "shard/checkpoint/folder/lock.h"
#include "shard/checkpoint/folder/names.h"
#include "shard/checkpoint/folder/token.h"
#include "shard/checkpoint/format/problem.h"

/** What is there of the save under way. */
typedef enum fsdpi_save_stage {
    FSDPI_STAGE_NONE,
    FSDPI_STAGE_PARTIAL, /* files, in `partial` */
    FSDPI_STAGE_NAMED,   /* all of them, in `name` */
    FSDPI_STAGE_LATEST   /* and `latest` names it */
} fsdpi_save_stage;

typedef struct fsdpi_run_folder {
    char              path[FSDPI_FOLDER_PATH_BYTES];
    char              job[FSDPI_JOB_BYTES];
    fsdpi_token       token; /* this program's, from fsdp-run */
    fsdpi_folder_lock lock;
    int unsynced; /* why a folder there could not be synced, if its file system does not do that: errno; 0 */
    fsdpi_save_stage stage;
    char             partial[FSDPI_FOLDER_NAME_BYTES], name[FSDPI_FOLDER_NAME_BYTES];
} fsdpi_run_folder;

/** Names it, without looking at it. FSDP_ERR_ARG where its absolute path is FSDP_CHECKPOINT_PATH_BYTES long or more. */
fsdp_status fsdpi_run_folder_set(fsdpi_run_folder *folder, const char *path, fsdpi_problem *problem);

/**
 * Makes the folder if need be, takes its lock, and chooses `job`. FSDP_ERR_IO; FSDP_ERR_STATE where the lock is taken. `folder`
 * stays where it is until it is closed.
 */
fsdp_status fsdpi_run_folder_open(fsdpi_run_folder *folder, fsdp_checkpoint_lock lock, fsdpi_problem *problem);

/** Gives the lock back. Where none is held does nothing. */
void fsdpi_run_folder_close(fsdpi_run_folder *folder);

/** Leaves a file by which others see whether they have the same folder, and removes it. FSDP_ERR_IO. */
fsdp_status fsdpi_run_folder_mark(const fsdpi_run_folder *folder, fsdpi_problem *problem);
void        fsdpi_run_folder_unmark(const fsdpi_run_folder *folder);

/** On any rank, with the `job` of the rank that has left one. FSDP_ERR_IO: it is not here. */
fsdp_status fsdpi_run_folder_find_mark(const fsdpi_run_folder *folder, fsdpi_problem *problem);

/** Sets `partial` for a save, on every rank. */
void fsdpi_run_folder_name_partial(fsdpi_run_folder *folder, uint64_t step);

/** Removes what interrupted saves have left, and makes `partial`. FSDP_ERR_STATE where the lock has been lost; FSDP_ERR_IO. */
fsdp_status fsdpi_run_folder_begin(fsdpi_run_folder *folder, fsdpi_problem *problem);

/**
 * Makes the files in `partial`, which are on the disk already, a checkpoint, and the latest one. Errors as above. After an
 * error `stage` says how far it has come, and so does the text if `latest` has moved.
 */
fsdp_status fsdpi_run_folder_commit(fsdpi_run_folder *folder, uint64_t step, fsdpi_problem *problem);

/** Removes what there is of a save under way, as far as possible, unless `latest` names it. */
void fsdpi_run_folder_abandon(fsdpi_run_folder *folder);

/**
 * Removes checkpoints up to the step of `name`, which is the latest: all but the last `keep_last`, and those whose step is a
 * multiple of `keep_every` (0: none). Later steps, of a run that has been gone back from, are left alone. `keep_last` 0 removes
 * none. One that cannot be removed stays.
 */
void fsdpi_run_folder_prune(const fsdpi_run_folder *folder, size_t keep_last, size_t keep_every);

#endif
