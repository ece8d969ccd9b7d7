/**
 * @file
 * Names of what is in a run's folder: of checkpoints, and of what is not finished. The latter begins with a period and ends in the
 * job's identity and ".partial", so that programs in one folder never take each other's for their own.
 */
#ifndef FSDPI_CHECKPOINT_NAMES_H
#define FSDPI_CHECKPOINT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "shard/checkpoint/format/folder.h"

/** BYTES of the text that tells one open folder from all others, with its NUL. */
#define FSDPI_JOB_BYTES 17

/** What of a program that saves there is in FSDPI_OWNER_FILE behind a period, where flock(2) cannot tell. */
#define FSDPI_OWNER_FILE "owner"

/** And of its rank 0, while others look whether they see the same folder. */
#define FSDPI_MARK_FILE "mark"

/** A checkpoint by its name: "step-000000500", or "step-000000500-2" of a second one. */
typedef struct fsdpi_checkpoint_name {
    uint64_t step;
    unsigned attempt;
    char     name[FSDPI_FOLDER_NAME_BYTES];
} fsdpi_checkpoint_name;

/** Names attempt 1, 2 and so on of a step. */
void fsdpi_checkpoint_name_make(uint64_t step, unsigned attempt, char *name);

/** Whether `name` is what fsdpi_checkpoint_name_make() makes. */
bool fsdpi_checkpoint_name_parse(const char *name, fsdpi_checkpoint_name *found);

/** ".NAME.JOB.partial" */
void fsdpi_partial_name_make(const char *name, const char *job, char *partial);

/** Whether `name` is one of these, of whatever job, or only of `job` if that is not NULL. */
bool fsdpi_is_partial_name(const char *name, const char *job);

#endif
