/**
 * @file
 * Passes of units.
 */
#ifndef FSDPI_PASS_H
#define FSDPI_PASS_H

#include "shard/state/model.h"

/** Ends all passes that are open. */
void fsdpi_passes_abandon(fsdp_model *model);

#endif
