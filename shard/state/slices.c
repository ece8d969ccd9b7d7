#include "shard/state/slices.h"

size_t fsdpi_owned_begin(const fsdpi_flat *flat, int slice)
{
    size_t first = 0, end = flat->n_tensors; /* the first that is in this slice, or in one behind it */

    while (first < end) {
        const size_t middle = first + (end - first) / 2;

        if (flat->owners[middle] < slice) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first < flat->n_tensors ? flat->tensors[first]->offset : flat->layout.padded;
}

size_t fsdpi_begin_of_rank(const void *flat, int rank)
{
    const fsdpi_flat *f = flat;

    return fsdpi_slice_begin(f, rank * (f->model->ctx->size / f->model->shards->size));
}

size_t fsdpi_held_intervals(fsdpi_flat *flat, int i)
{
    const fsdpi_held held = fsdpi_held_slices(flat);
    size_t           n    = 0;

    (void)fsdp_layout_intervals(&flat->layout, held.first + i, flat->n_tensors, flat->counts, flat->owners,
                                flat->intervals, &n);
    return n;
}
