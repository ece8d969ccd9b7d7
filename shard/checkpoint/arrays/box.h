/**
 * @file
 * A box of an array: which elements it has, row by row, and where they lie in memory. And whether the boxes of all ranks tile the
 * array. Nothing here communicates or needs a context.
 */
#ifndef FSDPI_BOX_H
#define FSDPI_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsdp/checkpoint.h"
#include "shard/checkpoint/format/problem.h"

/** Of an array of `shape`, with at least one dimension: dimensions that need not be told apart are one. */
typedef struct fsdpi_box {
    size_t n_dims;
    size_t shape[FSDP_MAX_DIMS];
    size_t offset[FSDP_MAX_DIMS];
    size_t extent[FSDP_MAX_DIMS];
    size_t stride[FSDP_MAX_DIMS]; /* ELEMENTS in memory */
} fsdpi_box;

/**
 * Takes a box as a program gives it.
 * @return FSDP_OK; FSDP_ERR_ARG: it reaches out of the array, or a stride is 0 where there is more than one element
 */
fsdp_status fsdpi_box_make(const fsdp_box *given, size_t n_dims, const size_t *shape, fsdpi_box *box,
                           fsdpi_problem *problem);

/** ELEMENTS `first` to `first + count` of `elements` in a row, as they are in memory without gaps. */
void fsdpi_box_make_flat(size_t elements, size_t first, size_t count, fsdpi_box *box);

/** ELEMENTS in it. */
size_t fsdpi_box_count(const fsdpi_box *box);

/** Elements that follow each other in the array, and in memory `stride` apart. */
typedef struct fsdpi_box_row {
    uint64_t first; /* ELEMENT of the array */
    size_t   count;
    size_t   at; /* ELEMENT in memory, from the box's first on */
    size_t   stride;
} fsdpi_box_row;

/** Where a walk over the rows is. Zeros: at the beginning. */
typedef struct fsdpi_box_walk {
    size_t index[FSDP_MAX_DIMS]; /* of the next row; the last is not used */
    bool   done;
} fsdpi_box_walk;

/** The next row, in the order of the array. @return false behind the last */
bool fsdpi_box_next(const fsdpi_box *box, fsdpi_box_walk *walk, fsdpi_box_row *row);

/**
 * This box's part of a sum over all ranks' boxes, from which fsdpi_tiling_holds() tells whether they tile the array: the sum, over
 * its 2^n_dims corners, of +-h(corner), where h is 128 random bits of a point. What a set of boxes covers, counted, is given by
 * its signed corners, since their sums along all dimensions are that count: so the boxes tile the array exactly where their
 * corners, added up, are those of the array. Other sets pass with a chance of 2^-128. In 32 bits each, as 64-bit numbers, so that
 * ranks can add them. Cost: 2^n_dims.
 */
enum { FSDPI_TILING_WORDS = 4 };
void fsdpi_tiling_add(const size_t *offset, const size_t *extent, size_t n_dims, int64_t sum[FSDPI_TILING_WORDS]);

/** Whether ranks' parts, added up, are those of a tiling. */
bool fsdpi_tiling_holds(const int64_t sum[FSDPI_TILING_WORDS], const size_t *shape, size_t n_dims);

/**
 * Names what is wrong with boxes that do not tile: two ranks whose boxes overlap, or a box that is no rank's.
 * @param[in] boxes  of each rank its offset and its extent, `n_dims` each
 * @return FSDP_ERR_ARG; FSDP_ERR_MEMORY. Cost: a sweep along the dimension in which the fewest boxes lie beside each other:
 *         O(n log n) and n times these
 */
fsdp_status fsdpi_tiling_explain(const char *name, const int64_t *boxes, size_t n, const size_t *shape, size_t n_dims,
                                 fsdpi_problem *problem);

#endif
