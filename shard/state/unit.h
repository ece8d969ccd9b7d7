/**
 * @file
 * Units as a program describes them.
 */
#ifndef FSDPI_UNIT_H
#define FSDPI_UNIT_H

#include "shard/state/model.h"

/** The strategy of the unit's own flat parameters in a model under `strategy`: its own, where it has one that goes with that. */
fsdp_strategy fsdpi_unit_strategy(const fsdp_unit *unit, fsdp_strategy strategy);

#endif
