/**
 * @file
 * Flat parameters: how the tensors of units become them.
 */
#ifndef FSDPI_FLAT_H
#define FSDPI_FLAT_H

#include <stddef.h>

#include "shard/state/model.h"

/** Adds the flat parameters of a unit to the plan. FSDP_ERR_ARG, recorded, where ranks cannot divide that many elements. */
fsdp_status fsdpi_plan_unit(const fsdp_unit *unit, fsdpi_plan *plan);

/** What one unit needs at a time. */
typedef struct fsdpi_unit_extent {
    size_t view_bytes; /* in a slot */
    size_t gradients,
        whole_gradients;        /* ELEMENTS of gradient views: of what is divided, and of what every rank holds whole */
    size_t gathers, reductions; /* operations under way, in slots and of what is divided */
} fsdpi_unit_extent;

/** Under the plan's strategy, on its ranks. Fails as fsdpi_plan_unit() does. */
fsdp_status fsdpi_unit_measure(const fsdp_unit *unit, const fsdpi_plan *plan, fsdpi_unit_extent *sum);

/** BYTES of one slice, packed: a multiple of FSDPI_ALIGNMENT. */
size_t fsdpi_packed_slice_bytes(const fsdp_layout *layout);

/** BYTES of the structures of all flat parameters. */
size_t fsdpi_flats_bytes(const fsdpi_plan *plan);

/** Builds them in model->flats_memory. */
void fsdpi_flats_build(fsdp_model *model);

#endif
