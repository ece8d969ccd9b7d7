/**
 * @file
 * The file ".owner", by which one program holds a folder where flock(2) is not to be had: it is made with O_EXCL, names host and
 * process, and is touched by a thread every 10 s. A program that is gone from the host that looks is gone at once; any other
 * when its file has not been touched for a minute, by the file system's own clock.
 */
#ifndef FSDPI_OWNER_H
#define FSDPI_OWNER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "shard/checkpoint/folder/identity.h"
#include "shard/checkpoint/folder/names.h"
#include "shard/checkpoint/format/problem.h"

enum { FSDPI_OWNER_STALE_S = 60, FSDPI_OWNER_TOUCH_MS = 10000, FSDPI_OWNER_HOLDER_BYTES = 192 };

typedef struct fsdpi_owner {
    char            path[FSDPI_FOLDER_PATH_BYTES]; /* "": none is held */
    char            line[FSDPI_IDENTITY_BYTES];    /* as this program has written it */
    unsigned        touch_ms;
    pthread_t       thread;
    pthread_mutex_t mutex;
    pthread_cond_t  wakes;
    bool            ends;
} fsdpi_owner;

/**
 * Makes the file and begins to touch it. FSDP_ERR_STATE, with who has it, where another program does; FSDP_ERR_IO.
 * @param[in] clock     an open file of the folder, which is touched to ask for its time
 * @param[in] touch_ms  FSDPI_OWNER_TOUCH_MS
 */
fsdp_status fsdpi_owner_take(fsdpi_owner *owner, const char *folder, const char *job, int clock, unsigned touch_ms,
                             fsdpi_problem *problem);

/** Whether the file still is this program's, and touches it. FSDP_ERR_STATE; FSDP_OK also where none is held. */
fsdp_status fsdpi_owner_check(const fsdpi_owner *owner, fsdpi_problem *problem);

/** Removes it, if it is this program's. */
void fsdpi_owner_release(fsdpi_owner *owner);

/** FSDP_ERR_STATE where another program has one; removes what one that is gone has left. For who holds the folder otherwise. */
fsdp_status fsdpi_owner_look(const char *folder, const char *job, int clock, fsdpi_problem *problem);

/** FSDP_ERR_STATE: `holder` saves in this folder; `remark` says what else there is to know. */
fsdp_status fsdpi_owner_refuse(const char *folder, const char *holder, const char *remark, fsdpi_problem *problem);

#endif
