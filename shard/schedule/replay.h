/**
 * @file
 * A record of the passes of a step, and a rank without samples that repeats it.
 *
 * A step is what lies between two calls that use up gradients. Kept are the beginnings and ends of the last step's passes, and
 * those since: when a step is done, these take the place of the former. Each beginning carries what fsdp_model_set_sync() and
 * fsdp_model_keep_gathered() had set. Under every strategy and setting, this is all that the collectives of a step depend on.
 */
#ifndef FSDPI_REPLAY_H
#define FSDPI_REPLAY_H

#include "shard/state/model.h"

/** Notes that a pass has begun; that the open one of a unit ends. */
void fsdpi_replay_begin(const fsdp_unit *unit);
void fsdpi_replay_end(const fsdp_unit *unit);

/** The step is done, unless there were no passes since the last one. */
void fsdpi_replay_step(fsdp_model *model);

/** What was recorded since the last step does not count. */
void fsdpi_replay_forget(fsdp_model *model);

#endif
