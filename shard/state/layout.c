#include "shard/state/layout.h"

#include <math.h>
#include <stdint.h>

#include "lib/base/error.h"

/* ---- making ------------------------------------------------------------------------------------------------------ */

static size_t greatest_common_divisor(size_t a, size_t b)
{
    while (b != 0) {
        const size_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* The least common multiple; SIZE_MAX where it does not fit. */
static size_t common_multiple(size_t a, size_t b)
{
    size_t multiple;

    return __builtin_mul_overflow(a / greatest_common_divisor(a, b), b, &multiple) ? SIZE_MAX : multiple;
}

static bool has_blocks(size_t granularity)
{
    return granularity != FSDP_GRANULARITY_FLAT && granularity != FSDP_GRANULARITY_TENSOR;
}

/* Of what slices are multiples. */
static size_t slice_multiple(const fsdp_layout *layout)
{
    return layout->granularity == FSDP_GRANULARITY_FLAT ? common_multiple(layout->multiple, FSDP_SHARD_MULTIPLE)
                                                        : layout->multiple;
}

fsdp_status fsdpi_layout_begin(int size, size_t alignment, size_t granularity, fsdp_layout *layout)
{
    if (size < 1) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_layout_init: %d ranks; there must be at least 1", size);
    }
    if (alignment == 0) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_layout_init: the alignment is 0; pass 1 or more elements");
    }
    *layout = (fsdp_layout){.size     = size,
                            .multiple = has_blocks(granularity) ? common_multiple(alignment, granularity) : alignment,
                            .granularity = granularity};
    if (slice_multiple(layout) > PTRDIFF_MAX / (size_t)size) {
        return fsdpi_fail(
            NULL, FSDP_ERR_ARG,
            "fsdp_layout_init: no size in elements is a multiple of the alignment %zu and of blocks of %zu "
            "on %d ranks; pass smaller ones",
            alignment, has_blocks(granularity) ? granularity : 1, size);
    }
    return FSDP_OK;
}

/* Once the sum has overflowed, it stays where it is: fsdpi_layout_end() says so. */
size_t fsdpi_layout_add(fsdp_layout *layout, size_t count)
{
    const size_t most = SIZE_MAX - layout->multiple;

    if (layout->padded > most || count > most - layout->padded) {
        layout->padded = layout->elements = SIZE_MAX;
        return 0;
    }
    const size_t begin = fsdpi_layout_round(layout, layout->padded);
    layout->elements += count;
    layout->padded = begin + count;
    return begin;
}

fsdp_status fsdpi_layout_end(fsdp_layout *layout)
{
    const size_t size = (size_t)layout->size, multiple = slice_multiple(layout);
    const size_t most = (SIZE_MAX / size / multiple - 1) * multiple;

    if (layout->elements == 0 || layout->padded > most) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_layout_init: %zu elements; %d ranks can divide 1 to %zu",
                          layout->elements, layout->size, most);
    }
    if (layout->granularity == FSDP_GRANULARITY_TENSOR) {
        layout->padded = fsdpi_layout_round(layout, layout->padded);
        return FSDP_OK;
    }
    const size_t share = layout->padded / size + (layout->padded % size != 0);
    layout->shard      = (share + multiple - 1) / multiple * multiple;
    layout->padded     = layout->shard * size;
    return FSDP_OK;
}

/* ---- whole tensors ----------------------------------------------------------------------------------------------- */

static fsdp_status check_owners(const char *function, size_t n_tensors, const int *owners, int size, bool wanted)
{
    if ((owners != NULL) != wanted) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          wanted ? "%s: FSDP_GRANULARITY_TENSOR without owners; pass those of fsdp_deal_tensors()"
                                 : "%s: owners, and the tensors are divided; pass NULL",
                          function);
    }
    for (size_t i = 0; i < n_tensors && wanted; i++) {
        if (owners[i] < (i > 0 ? owners[i - 1] : 0) || owners[i] >= size) {
            return fsdpi_fail(NULL, FSDP_ERR_ARG,
                              "%s: tensor %zu is rank %d's, of %d ranks; pass tensors in order of their owners",
                              function, i, owners[i], size);
        }
    }
    return FSDP_OK;
}

/* Of whole tensors: which of them are the rank's. */
static void find_owned(size_t n_tensors, const int *owners, int rank, size_t *first, size_t *end)
{
    size_t i = 0;

    while (i < n_tensors && owners[i] < rank) {
        i++;
    }
    *first = i;
    while (i < n_tensors && owners[i] == rank) {
        i++;
    }
    *end = i;
}

static size_t longest_slice(const fsdp_layout *layout, size_t n_tensors, const size_t *counts, const int *owners)
{
    size_t longest = 0, slice = 0;

    for (size_t i = 0; i < n_tensors; i++) {
        slice   = (i > 0 && owners[i] == owners[i - 1] ? slice : 0) + fsdpi_layout_round(layout, counts[i]);
        longest = slice > longest ? slice : longest;
    }
    return longest;
}

/* ---- public ------------------------------------------------------------------------------------------------------ */

fsdp_status fsdp_layout_init(size_t n_tensors, const size_t *counts, const int *owners, int size, size_t alignment,
                             size_t granularity, fsdp_layout *layout)
{
    const bool  whole = granularity == FSDP_GRANULARITY_TENSOR;
    fsdp_layout made  = {.size = 1, .multiple = 1};

    if (layout == NULL || (counts == NULL && n_tensors > 0)) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_layout_init: %s NULL",
                          layout == NULL ? "`layout` is" : "the counts are");
    }
    FSDP_TRY(fsdpi_layout_begin(size, alignment, granularity, &made));
    FSDP_TRY(check_owners("fsdp_layout_init", n_tensors, owners, size, whole));
    for (size_t i = 0; i < n_tensors; i++) {
        (void)fsdpi_layout_add(&made, counts[i]);
    }
    FSDP_TRY(fsdpi_layout_end(&made));
    made.shard = whole ? longest_slice(&made, n_tensors, counts, owners) : made.shard;
    *layout    = made;
    return FSDP_OK;
}

static fsdp_status check_intervals(const fsdp_layout *layout, int rank, size_t n_tensors, const size_t *counts,
                                   const int *owners)
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
    return check_owners("fsdp_layout_intervals", n_tensors, owners, layout->size,
                        layout->granularity == FSDP_GRANULARITY_TENSOR);
}

static size_t list_owned(const fsdp_layout *layout, int rank, size_t n_tensors, const size_t *counts, const int *owners,
                         fsdp_interval *intervals)
{
    size_t begin = 0, first, end;

    find_owned(n_tensors, owners, rank, &first, &end);
    for (size_t i = first; i < end; i++) {
        intervals[i - first] = (fsdp_interval){.tensor = i, .shard_begin = begin, .count = counts[i]};
        begin += fsdpi_layout_round(layout, counts[i]);
    }
    return end - first;
}

fsdp_status fsdp_layout_intervals(const fsdp_layout *layout, int rank, size_t n_tensors, const size_t *counts,
                                  const int *owners, fsdp_interval *intervals, size_t *n)
{
    if (layout == NULL || counts == NULL || intervals == NULL || n == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_layout_intervals: a pointer is NULL");
    }
    FSDP_TRY(check_intervals(layout, rank, n_tensors, counts, owners));
    if (layout->granularity == FSDP_GRANULARITY_TENSOR) {
        *n = list_owned(layout, rank, n_tensors, counts, owners, intervals);
        return FSDP_OK;
    }
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
        tensor_begin = fsdpi_layout_round(layout, tensor_end);
    }
    *n = written;
    return FSDP_OK;
}
