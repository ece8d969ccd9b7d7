/**
 * @file
 * Slots that the units of a model take in turn: for gathered views, and for gradient views, whose slots are buckets.
 *
 * As many as units may be open are as large as the largest unit, so that one fits whichever others are open. Behind them
 * come those for what is gathered ahead, stays gathered or is reduced: slot i, counted over all, is as large as the i-th largest unit. A unit
 * takes the smallest free slot that it fits in. So a large unit that stays open beside a chain of smaller ones, or a tiny
 * one at its end, leaves the chain the slots it needs.
 */
#ifndef FSDPI_SLOTS_H
#define FSDPI_SLOTS_H

#include <stdbool.h>
#include <stddef.h>

#include "shard/state/model.h"

typedef enum fsdpi_slot_use {
    FSDPI_SLOTS_OF_VIEWS,
    FSDPI_SLOTS_OF_GRADIENTS,      /* of what is divided */
    FSDPI_SLOTS_OF_WHOLE_GRADIENTS /* of what every rank holds whole */
} fsdpi_slot_use;

/** A walk over the sizes of all slots, which never grow: BYTES of views, ELEMENTS of gradients. */
typedef struct fsdpi_slot_sizes {
    const fsdp_model *model;
    const fsdpi_plan *plan;
    fsdpi_slot_use    use;
    size_t            open, all; /* slots for open units, and in all */
    size_t            i;         /* slots so far */
    size_t            largest, size;
    size_t            left; /* units of that size that have no slot yet */
} fsdpi_slot_sizes;

/** BYTES of a slot for views of so many: whole pages where they are mapped. */
size_t fsdpi_slot_bytes(const fsdp_model *model, size_t view_bytes);

/** Of a model as the plan says it is. */
fsdpi_slot_sizes fsdpi_slot_sizes_begin(const fsdp_model *model, const fsdpi_plan *plan, fsdpi_slot_use use);

/** The size of the next slot; false behind the last one. There are no more slots than units with something to put there. */
bool fsdpi_slot_sizes_next(fsdpi_slot_sizes *sizes, size_t *size);

#endif
