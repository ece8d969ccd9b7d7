/**
 * @file
 * The folder of checkpoints as fsdp-run has it: for itself alone, with the token of the newest attempt, and how far it is.
 */
#ifndef RUN_FENCE_H
#define RUN_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "shard/checkpoint/folder/token.h"
#include "shard/checkpoint/format/folder.h"

typedef struct run_fence {
    char path[FSDPI_FOLDER_PATH_BYTES]; /* absolute; "": there is no folder */
    int  lock;                          /* -1: none */
} run_fence;

/**
 * Makes the folder if need be, and takes it. `folder` NULL: there is none, and nothing below does anything.
 * @return false: `problem` says what is wrong, as another fsdp-run or another program that has it
 */
bool run_fence_open(run_fence *fence, const char *folder, fsdpi_problem *problem);

/** Takes the folder for the next attempt; from now on those before may rename nothing there. */
bool run_fence_raise(run_fence *fence, fsdpi_token *token, fsdpi_problem *problem);

/** The step of `latest`; -1: there is none. */
int64_t run_fence_step(const run_fence *fence);

/** A sign of life for those on other hosts, where the file system does not tell them of the lock. */
void run_fence_touch(const run_fence *fence);

void run_fence_close(run_fence *fence);

#endif
