/**
 * @file
 * Layouts made tensor by tensor, by those who have no array of their counts.
 */
#ifndef FSDPI_LAYOUT_H
#define FSDPI_LAYOUT_H

#include <stdbool.h>

#include "fsdp/layout.h"

/** No tensor yet. FSDP_ERR_ARG, recorded in no context. */
fsdp_status fsdpi_layout_begin(int size, size_t alignment, size_t granularity, fsdp_layout *layout);

/** Adds a tensor, from layout->padded on, rounded up: returns where it begins. After an overflow nothing is added. */
size_t fsdpi_layout_add(fsdp_layout *layout, size_t count);

/** Behind the last tensor; of whole tensors, `shard` stays 0. FSDP_ERR_ARG, recorded in no context. */
fsdp_status fsdpi_layout_end(fsdp_layout *layout);

/** The first element behind `end`, or `end` itself, with which a tensor may begin. */
static inline size_t fsdpi_layout_round(const fsdp_layout *layout, size_t end)
{
    return (end + layout->multiple - 1) / layout->multiple * layout->multiple;
}

#endif
