/**
 * @file
 * Gathered views.
 */
#ifndef FSDPI_GATHER_H
#define FSDPI_GATHER_H

#include <stdbool.h>

#include "shard/state/model.h"

/** Makes a unit's gathered view ready, and issues those that come next. Collective. `function` outlives the model. */
fsdp_status fsdpi_gather(fsdp_unit *unit, fsdpi_pass pass, fsdp_status status);

/** Behind the end of a pass: the view stays where it will be wanted next, or its slot becomes free. */
void fsdpi_gather_release(fsdp_unit *unit);

/** What has stayed in a slot from an earlier pass is dropped, whatever is expected next. Alike on all ranks. */
void fsdpi_gather_reshard(fsdp_unit *unit);

/** Before the masters change: gathered views are of no use any more, and nobody reads what they are gathered from. */
void fsdpi_gather_drop(fsdp_model *model);

/** After that; `lows`: they have to be brought up to date. */
fsdp_status fsdpi_gather_refresh(fsdp_model *model, bool lows);

/** Completes what is under way; the first error counts. */
fsdp_status fsdpi_gather_settle(fsdp_model *model);

/** Forgets what is gathered and the order of the units: ranks may have done different things. No pass is open. */
void fsdpi_gather_forget(fsdp_model *model);

/** The public function that begins a pass, as ranks compare it. */
const char *fsdpi_begin_name(fsdpi_pass pass);

#endif
