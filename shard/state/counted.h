/**
 * @file
 * Which of the elements that this rank holds count in sums over a whole model: each element on one rank.
 */
#ifndef FSDPI_COUNTED_H
#define FSDPI_COUNTED_H

#include <stdbool.h>
#include <stddef.h>

#include "shard/state/model.h"

/** Consecutive ELEMENTS of what this rank holds of a flat parameter. */
typedef struct fsdpi_counted {
    size_t at, count;
} fsdpi_counted;

/**
 * The next of them that count. @param[in,out] tensor where the walk is; 0 at its beginning
 * @return false behind the last
 */
bool fsdpi_counted_next(const fsdpi_flat *flat, size_t *tensor, fsdpi_counted *run);

/** What this rank holds of a tensor of a flat parameter; `count` 0: nothing. */
fsdpi_counted fsdpi_held_of(const fsdpi_tensor *tensor);

#endif
