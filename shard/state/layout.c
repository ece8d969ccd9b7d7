#include "fsdp/layout.h"

#include <stdint.h>

#include "lib/base/error.h"

fsdp_status fsdp_layout_init(size_t elements, int size, fsdp_layout *layout)
{
    if (layout == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_layout_init: `layout` is NULL");
    }
    if (size < 1) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_layout_init: %d ranks; there must be at least 1", size);
    }
    const size_t most = (SIZE_MAX / (size_t)size / FSDP_SHARD_MULTIPLE - 1) * FSDP_SHARD_MULTIPLE;
    if (elements == 0 || elements > most) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_layout_init: %zu elements; %d ranks can divide 1 to %zu", elements,
                          size, most);
    }
    const size_t share = elements / (size_t)size + (elements % (size_t)size != 0);
    const size_t shard = (share + FSDP_SHARD_MULTIPLE - 1) / FSDP_SHARD_MULTIPLE * FSDP_SHARD_MULTIPLE;
    *layout = (fsdp_layout){.elements = elements, .padded = shard * (size_t)size, .shard = shard, .size = size};
    return FSDP_OK;
}

static fsdp_status check_intervals(const fsdp_layout *layout, int rank, size_t n_tensors, const size_t *counts)
{
    size_t sum = 0;

    if (rank < 0 || rank >= layout->size) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_layout_intervals: rank %d; this layout has ranks 0 to %d", rank,
                          layout->size - 1);
    }
    for (size_t i = 0; i < n_tensors; i++) {
        sum = counts[i] <= layout->elements - sum ? sum + counts[i] : SIZE_MAX;
        if (sum == SIZE_MAX) {
            break;
        }
    }
    if (sum != layout->elements) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_layout_intervals: the counts do not add up to the layout's %zu "
                          "elements; pass the counts that it was made for",
                          layout->elements);
    }
    return FSDP_OK;
}

fsdp_status fsdp_layout_intervals(const fsdp_layout *layout, int rank, size_t n_tensors, const size_t *counts,
                                  fsdp_interval *intervals, size_t *n)
{
    if (layout == NULL || counts == NULL || intervals == NULL || n == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_layout_intervals: a pointer is NULL");
    }
    FSDP_TRY(check_intervals(layout, rank, n_tensors, counts));

    const size_t shard_begin  = layout->shard * (size_t)rank;
    const size_t shard_end    = shard_begin + layout->shard;
    size_t       tensor_begin = 0, written = 0;
    for (size_t i = 0; i < n_tensors; i++) {
        const size_t tensor_end = tensor_begin + counts[i];
        const size_t begin      = tensor_begin > shard_begin ? tensor_begin : shard_begin;
        const size_t end        = tensor_end < shard_end ? tensor_end : shard_end;

        if (begin < end) {
            intervals[written++] = (fsdp_interval){.tensor       = i,
                                                   .tensor_begin = begin - tensor_begin,
                                                   .shard_begin  = begin - shard_begin,
                                                   .count        = end - begin};
        }
        tensor_begin = tensor_end;
    }
    *n = written;
    return FSDP_OK;
}
