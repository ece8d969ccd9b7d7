/**
 * @file
 * fsdp_model_options.fixed_addresses: each unit has a range of addresses of its own, at which its slot is seen during a pass,
 * whichever slot that is. Gathers go on writing to the slot itself. Under strategies that keep views, and under NO_SHARD, what
 * is gathered stays where it is, and there are no such ranges.
 */
#ifndef FSDPI_FIXED_ADDRESSES_H
#define FSDPI_FIXED_ADDRESSES_H

#include <stdbool.h>

#include "shard/state/model.h"

/** Whether the model's units have such ranges. */
bool fsdpi_has_windows(const fsdp_model *model);

/** Reserves those of all units. Local. FSDP_ERR_MEMORY, for the agreement to print. */
fsdp_status fsdpi_windows_reserve(fsdp_model *model);

/** Which of these addresses are whose. */
void fsdpi_windows_lay_out(fsdp_model *model);

/** At the beginning of a pass, when the views are gathered. Local. FSDP_ERR_MEMORY where the system refuses. */
fsdp_status fsdpi_address_show(fsdp_unit *unit);

/** At its end, before the slot can be another unit's. */
void fsdpi_address_hide(fsdp_unit *unit);

/** Where the program sees the view of one of the unit's members. */
unsigned char *fsdpi_address_of(const fsdp_unit *unit, const fsdpi_member *member);

#endif
