/**
 * @file
 * Pieces of work on files.
 */
#ifndef FSDPI_WORK_H
#define FSDPI_WORK_H

#include "shard/checkpoint/write/checkpoint.h"

/** Begins a piece of work. Ends it at once unless the save is asynchronous. */
void fsdpi_work_start(fsdp_checkpoint *checkpoint, fsdp_status (*work)(fsdp_checkpoint *checkpoint));

/** Waits for it. */
void fsdpi_work_join(fsdp_checkpoint *checkpoint);

#endif
