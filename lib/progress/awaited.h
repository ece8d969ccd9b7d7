/**
 * @file
 * Whom an operation waits for, from what this rank can see: letters and milestones in shared memory, the leaders' exchange, and
 * the messages of its algorithm.
 */
#ifndef FSDPI_AWAITED_H
#define FSDPI_AWAITED_H

#include "lib/progress/request.h"
#include "lib/sync/rank_list.h"

/** Of an operation that has just been looked at in vain. Nobody: it waits for this rank itself, as for its GPU. */
void fsdpi_awaited(const fsdp_request *request, fsdpi_rank_list *list);

/**
 * Some ranks on both sides of this one, 1, 2, 4, ... away: what each of them tells these reaches everyone, however few of
 * them are gone.
 */
void fsdpi_neighbours(const fsdpi_core *core, fsdpi_rank_list *list);

#endif
