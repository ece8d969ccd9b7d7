/**
 * @file
 * The lock of a run's folder: one program at a time saves there.
 */
#ifndef FSDPI_FOLDER_LOCK_H
#define FSDPI_FOLDER_LOCK_H

#include "shard/checkpoint/format/problem.h"

/**
 * FSDP_ERR_STATE, with who has it, where another program does; FSDP_ERR_IO.
 * @param[out] lock  a descriptor; -1 after an error
 */
fsdp_status fsdpi_lock_take(const char *folder, int *lock, fsdpi_problem *problem);

/** Gives it back, as the end of the process does. Where none is held does nothing. */
void fsdpi_lock_release(int *lock);

#endif
