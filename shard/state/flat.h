/**
 * @file
 * Flat parameters: how the tensors of units become them.
 */
#ifndef FSDPI_FLAT_H
#define FSDPI_FLAT_H

#include <stdbool.h>
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

/** Whether two tensors of one unit are in one flat parameter. */
bool fsdpi_go_together(const fsdpi_tensor *a, const fsdpi_tensor *b);

/** Of a tensor that is its own owner: under what its flat parameter is, and ELEMENTS it takes there where it is dealt whole. */
fsdp_strategy fsdpi_tensor_strategy(const fsdpi_tensor *tensor, const fsdpi_plan *plan);
size_t        fsdpi_padded_tensor(const fsdpi_tensor *tensor);

/** BYTES of one slice, packed: a multiple of FSDPI_ALIGNMENT. */
size_t fsdpi_packed_slice_bytes(const fsdp_layout *layout);

/**
 * BYTES that hold `held` ELEMENTS as they are gathered, in a type of that WIDTH, beside their masters; of what every rank holds
 * whole, also what passes see, if it is quantised: that is packed first, and the view lies behind it.
 */
size_t fsdpi_low_bytes(const fsdp_model *model, size_t held, size_t width, bool quantized, bool whole);

/** BYTES of the structures of all flat parameters. */
size_t fsdpi_flats_bytes(const fsdpi_plan *plan);

/** Builds them in model->flats_memory. */
void fsdpi_flats_build(fsdp_model *model);

#endif
