/**
 * @file
 * Work that has no thread of its own and goes on while any thread of this process waits in the library: the operations of
 * contexts that advance inside calls only. Ranks may then wait for two such contexts in a different order, as for MPI's own
 * operations.
 *
 * The list of it is the only thing that the library keeps for a process rather than for a context.
 */
#ifndef FSDPI_SIDE_WORK_H
#define FSDPI_SIDE_WORK_H

#include <stdbool.h>

#include "lib/base/step.h"

typedef struct fsdpi_side_work {
    struct fsdpi_side_work *next;
    void                   *owner;
    /**
     * Does what can be done without waiting. FSDPI_MOVED: something has been done; FSDPI_WAITING: nothing could be;
     * FSDPI_FINISHED: there is nothing to do.
     */
    fsdpi_progress (*advance)(void *owner);
    bool listed;
} fsdpi_side_work;

/** From now on it goes on. The memory stays the caller's, and in place, until the work is removed. */
void fsdpi_side_work_add(fsdpi_side_work *work);

/** When this returns, no thread is at it any more. Does nothing with work that is not in the list. */
void fsdpi_side_work_remove(fsdpi_side_work *work);

/**
 * Between two looks of a thread that waits: advances all work but its `own`; NULL: all. Never waits.
 * @return FSDPI_MOVED: some of it has; FSDPI_WAITING: there is some, and none has; FSDPI_FINISHED: there is none, or another
 *         thread is at it
 */
fsdpi_progress fsdpi_side_work_advance(const fsdpi_side_work *own);

#endif
