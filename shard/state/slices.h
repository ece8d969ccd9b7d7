/**
 * @file
 * Which slices of flat parameters this rank holds.
 */
#ifndef FSDPI_SLICES_H
#define FSDPI_SLICES_H

#include <stddef.h>

#include "shard/state/model.h"

/** Which slices this rank holds: from `first` on, `n` of them. */
typedef struct fsdpi_held {
    int first;
    int n;
} fsdpi_held;

static inline fsdpi_held fsdpi_held_slices(const fsdp_model *model)
{
    const int n = model->ctx->size / model->shards->size;

    if (model->options.strategy == FSDP_NO_SHARD) {
        return (fsdpi_held){.first = 0, .n = model->ctx->size};
    }
    return (fsdpi_held){.first = model->shards->rank * n, .n = n};
}

/** ELEMENTS of a flat parameter that this rank holds. */
static inline size_t fsdpi_held_elements(const fsdpi_flat *flat)
{
    return (size_t)fsdpi_held_slices(flat->model).n * flat->layout.shard;
}

/** Where the `i`-th of the slices held begins in an array of the flat parameter. */
static inline float *fsdpi_slice_in(const fsdpi_flat *flat, float *array, int i)
{
    return array + (size_t)i * flat->layout.shard;
}

/** The intervals of the `i`-th slice held, into flat->intervals. Returns how many there are. */
size_t fsdpi_held_intervals(fsdpi_flat *flat, int i);

#endif
