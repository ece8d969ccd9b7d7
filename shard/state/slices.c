#include "shard/state/slices.h"

size_t fsdpi_held_intervals(fsdpi_flat *flat, int i)
{
    const fsdpi_held held = fsdpi_held_slices(flat);
    size_t           n    = 0;

    (void)fsdp_layout_intervals(&flat->layout, held.first + i, flat->n_tensors, flat->counts, NULL, flat->intervals,
                                &n);
    return n;
}
