#include "shard/state/counted.h"

#include "shard/state/plane.h"
#include "shard/state/slices.h"

fsdpi_counted fsdpi_held_of(const fsdpi_tensor *tensor)
{
    const fsdpi_flat *flat  = tensor->member->flat;
    const size_t      begin = fsdpi_held_begin(flat), end = begin + fsdpi_held_elements(flat);
    const size_t      first = tensor->offset, behind = first + tensor->count;
    const size_t      from = first > begin ? first : begin, to = behind < end ? behind : end;

    return from < to ? (fsdpi_counted){from - begin, to - from} : (fsdpi_counted){0};
}

static bool all_count(const fsdpi_flat *flat)
{
    for (size_t t = 0; t < flat->n_tensors; t++) {
        if (!fsdpi_is_counted(flat->tensors[t])) {
            return false;
        }
    }
    return true;
}

bool fsdpi_counted_next(const fsdpi_flat *flat, size_t *tensor, fsdpi_counted *run)
{
    if (!fsdpi_counts(flat)) {
        return false;
    }
    if (*tensor == 0 && all_count(flat)) {
        *tensor = flat->n_tensors;
        *run    = (fsdpi_counted){0, fsdpi_held_elements(flat)};
        return true;
    }
    while (*tensor < flat->n_tensors) {
        const fsdpi_tensor *next = flat->tensors[(*tensor)++];

        *run = fsdpi_held_of(next);
        if (run->count > 0 && fsdpi_is_counted(next)) {
            return true;
        }
    }
    return false;
}
