#include "shard/checkpoint/arrays/box.h"

#include <string.h>

#include "lib/base/error.h"

/* ---- as the program gives it --------------------------------------------------------------------------------------- */

static fsdp_status check(const fsdp_box *given, size_t n_dims, const size_t *shape, bool dense, fsdpi_problem *problem)
{
    for (size_t d = 0; d < n_dims; d++) {
        if (given->offset[d] > shape[d] || given->extent[d] > shape[d] - given->offset[d]) {
            return fsdpi_problem_set(problem, FSDP_ERR_ARG,
                                     "the box has elements %zu to %zu + %zu of dimension %zu, which has %zu",
                                     given->offset[d], given->offset[d], given->extent[d], d, shape[d]);
        }
        if (!dense && given->stride[d] == 0 && given->extent[d] > 1) {
            return fsdpi_problem_set(
                problem, FSDP_ERR_ARG,
                "the stride of dimension %zu is 0, where the box has %zu elements; set all strides, "
                "or none",
                d, given->extent[d]);
        }
    }
    return FSDP_OK;
}

static bool is_dense(const fsdp_box *given, size_t n_dims)
{
    for (size_t d = 0; d < n_dims; d++) {
        if (given->stride[d] != 0) {
            return false;
        }
    }
    return true;
}

/* Joins dimension `d` of what is given to the last of the box, where that is as one in the file and in memory. */
static bool join(fsdpi_box *box, size_t shape, size_t offset, size_t extent, size_t stride)
{
    const size_t last = box->n_dims - 1;

    if (extent != shape || offset != 0 || (box->extent[last] > 1 && box->stride[last] != stride * extent)) {
        return false;
    }
    box->shape[last] *= shape;
    box->offset[last] *= shape;
    box->extent[last] *= shape;
    box->stride[last] = stride;
    return true;
}

static void add(fsdpi_box *box, size_t shape, size_t offset, size_t extent, size_t stride)
{
    if (box->n_dims > 0 && join(box, shape, offset, extent, stride)) {
        return;
    }
    box->shape[box->n_dims]  = shape;
    box->offset[box->n_dims] = offset;
    box->extent[box->n_dims] = extent;
    box->stride[box->n_dims] = stride;
    box->n_dims++;
}

fsdp_status fsdpi_box_make(const fsdp_box *given, size_t n_dims, const size_t *shape, fsdpi_box *box,
                           fsdpi_problem *problem)
{
    const bool dense = is_dense(given, n_dims);
    size_t     strides[FSDP_MAX_DIMS], stride = 1;

    FSDP_TRY(check(given, n_dims, shape, dense, problem));
    for (size_t d = n_dims; d-- > 0;) {
        strides[d] = dense ? stride : given->stride[d];
        stride *= given->extent[d];
    }
    *box = (fsdpi_box){0};
    for (size_t d = 0; d < n_dims; d++) {
        add(box, shape[d], given->offset[d], given->extent[d], strides[d]);
    }
    if (n_dims == 0) {
        add(box, 1, 0, 1, 1); /* a scalar */
    }
    return FSDP_OK;
}

void fsdpi_box_make_flat(size_t elements, size_t first, size_t count, fsdpi_box *box)
{
    *box = (fsdpi_box){0};
    add(box, elements, first, count, 1);
}

size_t fsdpi_box_count(const fsdpi_box *box)
{
    size_t count = 1;

    for (size_t d = 0; d < box->n_dims; d++) {
        count *= box->extent[d];
    }
    return count;
}

/* ---- its rows ------------------------------------------------------------------------------------------------------ */

/* The next index of all dimensions but the last. */
static void step(const fsdpi_box *box, fsdpi_box_walk *walk)
{
    for (size_t d = box->n_dims - 1; d-- > 0;) {
        if (++walk->index[d] < box->extent[d]) {
            return;
        }
        walk->index[d] = 0;
    }
    walk->done = true;
}

bool fsdpi_box_next(const fsdpi_box *box, fsdpi_box_walk *walk, fsdpi_box_row *row)
{
    const size_t last = box->n_dims - 1;

    if (walk->done || fsdpi_box_count(box) == 0) {
        return false;
    }
    *row = (fsdpi_box_row){.count = box->extent[last], .stride = box->stride[last]};
    for (size_t d = 0; d < box->n_dims; d++) {
        const size_t index = d < last ? walk->index[d] : 0;

        row->first = row->first * box->shape[d] + box->offset[d] + index;
        row->at += index * box->stride[d];
    }
    step(box, walk);
    return true;
}
