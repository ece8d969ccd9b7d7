/**
 * @file
 * How a unit's tensors are divided over ranks: a pure function of their element counts, the number of ranks, and how finely
 * they may be divided.
 *
 * The tensors are laid one behind the other. Each begins at a multiple of an alignment, behind as much padding as that takes.
 * The division over ranks has a granularity:
 * - FSDP_GRANULARITY_FLAT: every rank holds the same number of elements, a multiple of FSDP_SHARD_MULTIPLE; rank r holds
 *   elements [r x shard, (r + 1) x shard). The division into equal contiguous slices of a flat concatenation is that of ZeRO
 *   (Rajbhandari, Rasley, Ruwase and He, 2020) and of PyTorch's FlatParameter.
 * - n, from 1 on: so too, but tensors begin, and slices end, at multiples of n elements. A block of n elements of a tensor,
 *   counted from its beginning, is never on two ranks.
 * - FSDP_GRANULARITY_TENSOR: each tensor is whole on one rank, its owner. Tensors are in order of their owners, and the slice
 *   of a rank is those it owns, with the padding behind each. fsdp_deal_tensors() finds owners.
 * Padding is zero, and never leaves the library.
 *
 * Everything here is local and never communicates: any rank can compute it for any other, for any number of ranks.
 */
#ifndef FSDP_LAYOUT_H
#define FSDP_LAYOUT_H

#include <stddef.h>

#include "fsdp/export.h"
#include "fsdp/status.h"

/** Every slice of FSDP_GRANULARITY_FLAT is a multiple of this many elements, and so begins at 256 bytes in every type. */
#define FSDP_SHARD_MULTIPLE 256

/** BYTES at a multiple of which every tensor of a model begins, in the gathered view and in the gradient view. */
#define FSDP_TENSOR_ALIGNMENT 64

/** Granularity: slices end anywhere. A number from 1 on is that of ELEMENTS in a block. */
#define FSDP_GRANULARITY_FLAT ((size_t)0)
/** Granularity: each tensor is some rank's as a whole, for optimizers that need matrices. */
#define FSDP_GRANULARITY_TENSOR ((size_t)-1)

/** The division of one unit. */
typedef struct fsdp_layout {
    size_t elements; /**< of all tensors together */
    size_t padded;   /**< all slices together, padding included */
    size_t shard;    /**< ELEMENTS per rank, padding included; of whole tensors, of the longest slice */
    int    size;     /**< ranks */
    size_t multiple; /**< of ELEMENTS, at which tensors begin */
    size_t granularity;
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
 * Divides tensors over `size` ranks.
 *
 * @param[in]  n_tensors    how many; at least 1
 * @param[in]  counts       ELEMENTS of each tensor
 * @param[in]  owners       of FSDP_GRANULARITY_TENSOR: the rank that each tensor is on, none below that of the tensor before;
 *                          else NULL
 * @param[in]  size         ranks, at least 1
 * @param[in]  alignment    ELEMENTS at a multiple of which tensors begin; at least 1. A model's are FSDP_TENSOR_ALIGNMENT bytes
 *                          in the narrowest type that the tensors are gathered or reduced in, int8 where they are quantised.
 * @param[in]  granularity  FSDP_GRANULARITY_FLAT, FSDP_GRANULARITY_TENSOR, or ELEMENTS of a block
 * @param[out] layout       untouched on failure
 * @return FSDP_OK; FSDP_ERR_ARG: no elements, size < 1, alignment 0, owners that are missing, not asked for, not ranks, or not
 *         in order, a NULL pointer, or more elements than size_t can pad.
 */
FSDP_API fsdp_status fsdp_layout_init(size_t n_tensors, const size_t *counts, const int *owners, int size,
                                      size_t alignment, size_t granularity, fsdp_layout *layout);

/**
 * Lists what a rank's shard consists of, in order of its elements; padding belongs to no interval.
 *
 * @param[in]  layout     from fsdp_layout_init()
 * @param[in]  rank       0 to layout->size - 1
 * @param[in]  n_tensors  how many tensors the unit has
 * @param[in]  counts     ELEMENTS of each tensor, as given to fsdp_layout_init()
 * @param[in]  owners     as given to fsdp_layout_init()
 * @param[out] intervals  room for `n_tensors` intervals; one shard never has more
 * @param[out] n          how many were written; 0 for a rank that holds only padding, or nothing
 * @return FSDP_OK; FSDP_ERR_ARG: a rank outside the layout, counts that do not add up, owners that are missing, a NULL pointer.
 */
FSDP_API fsdp_status fsdp_layout_intervals(const fsdp_layout *layout, int rank, size_t n_tensors, const size_t *counts,
                                           const int *owners, fsdp_interval *intervals, size_t *n);

/**
 * What updating a whole tensor costs its owner, in multiplications up to a constant factor: 1 for each element; where
 * `matrix` is not 0 and the tensor has two dimensions or more, 15 x least^2 x most for the matrix of its first extent and of
 * the product of the others, as five iterations of Newton and Schulz take (Jordan, Muon, 2024). A scalar costs 1.
 *
 * @param[in] n_dims  0 to FSDP_MAX_DIMS
 * @param[in] shape   `n_dims` extents
 */
FSDP_API double fsdp_tensor_cost(size_t n_dims, const size_t *shape, int matrix);

/**
 * Deals whole tensors to ranks by what they cost: the costliest first, each to the rank that has least so far (Graham, 1969).
 * No rank has more than 1 / size of all costs plus that of one tensor. Fewer tensors than ranks go to ranks spread evenly.
 * The same on every rank and machine. Takes O(n log n) time and, while it runs, O(n) memory, whatever `size`.
 *
 * @param[in]  n_tensors  how many; 0 is allowed and does nothing
 * @param[in]  costs      of each, finite and above 0, as from fsdp_tensor_cost()
 * @param[in]  size       ranks, at least 1
 * @param[out] owners     the rank of each, 0 to size - 1
 * @return FSDP_OK; FSDP_ERR_ARG: size < 1, a cost that is not above 0 or not finite, a NULL pointer; FSDP_ERR_MEMORY.
 */
FSDP_API fsdp_status fsdp_deal_tensors(size_t n_tensors, const double *costs, int size, int *owners);

FSDP_EXTERN_C_END

#endif
