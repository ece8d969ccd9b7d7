/**
 * @file
 * Which slices of a flat parameter this rank holds.
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

/** Whether every rank holds all of it, and nothing is gathered. */
static inline bool fsdpi_is_whole(const fsdpi_flat *flat)
{
    return flat->strategy == FSDP_NO_SHARD;
}

static inline fsdpi_held fsdpi_held_slices(const fsdpi_flat *flat)
{
    const fsdp_model *model = flat->model;
    const int         n     = model->ctx->size / model->shards->size;

    if (fsdpi_is_whole(flat)) {
        return (fsdpi_held){.first = 0, .n = flat->layout.size};
    }
    return (fsdpi_held){.first = model->shards->rank * n, .n = n};
}

/** Of tensors that are dealt whole, what fsdpi_slice_begin() says. */
size_t fsdpi_owned_begin(const fsdpi_flat *flat, int slice);

/** Of an fsdpi_flat, which element what a rank of those that share a copy holds begins with: an fsdpi_begins. */
size_t fsdpi_begin_of_rank(const void *flat, int rank);

/** Which element of the flat parameter slice `slice`, of those of all ranks, begins with; of `size` of them, where it ends. */
static inline size_t fsdpi_slice_begin(const fsdpi_flat *flat, int slice)
{
    return flat->owners != NULL ? fsdpi_owned_begin(flat, slice) : (size_t)slice * flat->layout.shard;
}

/** ELEMENTS of slice `slice`, of those of all ranks, padding included. */
static inline size_t fsdpi_slice_count(const fsdpi_flat *flat, int slice)
{
    return fsdpi_slice_begin(flat, slice + 1) - fsdpi_slice_begin(flat, slice);
}

/** Which element of the flat parameter what this rank holds of it begins with. */
static inline size_t fsdpi_held_begin(const fsdpi_flat *flat)
{
    return fsdpi_slice_begin(flat, fsdpi_held_slices(flat).first);
}

/**
 * Whether what this rank holds of it counts where the ranks that share a copy add up: each element once. Where all parts of a model on
 * a mesh add up, which are not told from copies, it counts in one copy alone.
 */
static inline bool fsdpi_counts(const fsdpi_flat *flat)
{
    const fsdp_model *model = flat->model;
    const bool        first = !fsdpi_is_whole(flat) || model->shards->rank == 0;

    return model->plane.ctx != model->ctx ? first && (model->replicas == NULL || model->replicas->rank == 0)
                                          : first || !model->divides;
}

/** ELEMENTS of a flat parameter that this rank holds. */
static inline size_t fsdpi_held_elements(const fsdpi_flat *flat)
{
    const fsdpi_held held = fsdpi_held_slices(flat);

    return fsdpi_slice_begin(flat, held.first + held.n) - fsdpi_slice_begin(flat, held.first);
}

/** What ranks have to agree on of a gather or a reduction: how many ELEMENTS each holds; 0 where that differs. */
static inline size_t fsdpi_common_count(const fsdpi_flat *flat)
{
    return flat->owners != NULL ? 0 : fsdpi_held_elements(flat);
}

/** How many ELEMENTS of what this rank holds come before the `i`-th of the slices held. */
static inline size_t fsdpi_held_slice_begin(const fsdpi_flat *flat, int i)
{
    return fsdpi_slice_begin(flat, fsdpi_held_slices(flat).first + i) - fsdpi_held_begin(flat);
}

/** ELEMENTS of the `i`-th of the slices held. */
static inline size_t fsdpi_held_slice_count(const fsdpi_flat *flat, int i)
{
    return fsdpi_slice_count(flat, fsdpi_held_slices(flat).first + i);
}

/** Element `at` of an array of a model's masters or gradients. */
static inline void *fsdpi_at(const fsdp_model *model, void *array, size_t at)
{
    return (unsigned char *)array + at * fsdpi_master_width(model);
}

/** Of what this rank holds of a flat parameter, element `at` of its master, and of its reduced gradient. */
static inline void *fsdpi_master_at(const fsdpi_flat *flat, size_t at)
{
    return fsdpi_at(flat->model, flat->master, at);
}

static inline void *fsdpi_gradient_at(const fsdpi_flat *flat, size_t at)
{
    return fsdpi_at(flat->model, flat->gradient, at);
}

/** Where the `i`-th of the slices held begins in such an array of the flat parameter. */
static inline void *fsdpi_slice_in(const fsdpi_flat *flat, void *array, int i)
{
    return fsdpi_at(flat->model, array, fsdpi_held_slice_begin(flat, i));
}

/** The intervals of the `i`-th slice held, into flat->intervals. Returns how many there are. */
size_t fsdpi_held_intervals(fsdpi_flat *flat, int i);

#endif
