/**
 * @file
 * Removing checkpoints, so that none that is there in part has the name of a whole one.
 */
#ifndef FSDPI_CHECKPOINT_REMOVE_H
#define FSDPI_CHECKPOINT_REMOVE_H

#include "shard/checkpoint/folder/names.h"
#include "shard/checkpoint/format/problem.h"

/** Removes a partial folder with its files, as far as possible. */
void fsdpi_partial_remove(const char *folder, const char *partial);

/** Removes a checkpoint: its name goes first. */
void fsdpi_checkpoint_remove(const char *folder, const char *job, const char *name);

/** Removes all that is not finished: of any job, or only of this one if `job` is not NULL. FSDP_ERR_IO: it cannot be listed. */
fsdp_status fsdpi_leftovers_remove(const char *folder, const char *job, fsdpi_problem *problem);

#endif
