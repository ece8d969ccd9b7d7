/**
 * @file
 * How a unit's tensors are divided over ranks: a pure function of their element counts and the number of ranks.
 *
 * The tensors are laid end to end without gaps. The end is padded so that every rank holds the same number of elements
 * and that number is a multiple of FSDP_SHARD_MULTIPLE; rank r holds elements [r x shard, (r + 1) x shard). Padding is
 * zero, and never leaves the library. The division into equal contiguous slices of a flat concatenation is that of ZeRO
 * (Rajbhandari, Rasley, Ruwase and He, 2020) and of PyTorch's FlatParameter.
 *
 * Everything here is local and never communicates: any rank can compute it for any other, for any number of ranks.
 */
#ifndef FSDP_LAYOUT_H
#define FSDP_LAYOUT_H

#include <stddef.h>

#include "fsdp/export.h"
#include "fsdp/status.h"

/** Every shard is a multiple of this many elements, and therefore aligned to 256 bytes in every precision. */
#define FSDP_SHARD_MULTIPLE 256

/** The division of one unit. */
typedef struct fsdp_layout {
    size_t elements; /**< of all tensors together */
    size_t padded;   /**< size x shard */
    size_t shard;    /**< ELEMENTS per rank, padding included */
    int    size;     /**< ranks */
} fsdp_layout;

/** A run of elements of one tensor that one rank holds. All in ELEMENTS. */
typedef struct fsdp_interval {
    size_t tensor;       /**< its index in the unit */
    size_t tensor_begin; /**< where the run begins in that tensor */
    size_t shard_begin;  /**< where it begins in the rank's shard */
    size_t count;        /**< never 0 */
} fsdp_interval;

FSDP_EXTERN_C_BEGIN

/**
 * Divides `elements` over `size` ranks.
 *
 * @param[out] layout  untouched on failure
 * @return FSDP_OK; FSDP_ERR_ARG: no elements, size < 1, a NULL pointer, or more elements than size_t can pad.
 */
FSDP_API fsdp_status fsdp_layout_init(size_t elements, int size, fsdp_layout *layout);

/**
 * Lists what a rank's shard consists of, in order of its elements; padding belongs to no interval.
 *
 * @param[in]  layout     from fsdp_layout_init()
 * @param[in]  rank       0 to layout->size - 1
 * @param[in]  n_tensors  how many tensors the unit has
 * @param[in]  counts     ELEMENTS of each tensor; their sum is layout->elements
 * @param[out] intervals  room for `n_tensors` intervals; one shard never has more
 * @param[out] n          how many were written; 0 for a rank that holds only padding
 * @return FSDP_OK; FSDP_ERR_ARG: a rank outside the layout, counts that do not add up, a NULL pointer.
 */
FSDP_API fsdp_status fsdp_layout_intervals(const fsdp_layout *layout, int rank, size_t n_tensors, const size_t *counts,
                                           fsdp_interval *intervals, size_t *n);

FSDP_EXTERN_C_END

#endif
