/**
 * @file
 * Which elements of a whole tensor this position of the tensor axis has. Its part is made of rows of equal length, at equal
 * distances: with a division along the first dimension there is one.
 */
#ifndef FSDPI_TP_PART_H
#define FSDPI_TP_PART_H

#include <stdbool.h>
#include <stddef.h>

#include "shard/state/model.h"

/** Consecutive ELEMENTS of a part, and where the first of them is in the whole tensor. */
typedef struct fsdpi_tp_run {
    size_t whole;
    size_t count;
} fsdpi_tp_run;

/** Those of `count` elements of a part, from `begin` on, that follow each other in the whole tensor as well. */
static inline fsdpi_tp_run fsdpi_tp_run_at(const fsdpi_tensor *tensor, size_t begin, size_t count)
{
    if (tensor->tp_parts == 1) {
        return (fsdpi_tp_run){begin, count};
    }
    const size_t row = tensor->tp_row, parts = (size_t)tensor->tp_parts;
    const size_t mine = (size_t)tensor->unit->model->plane.tp_position;
    const size_t left = row - begin % row;

    return (fsdpi_tp_run){(begin / row * parts + mine) * row + begin % row, count < left ? count : left};
}

/** ELEMENTS of the whole tensor. */
static inline size_t fsdpi_whole_count(const fsdpi_tensor *tensor)
{
    return tensor->count * (size_t)tensor->tp_parts;
}

/** FSDP_OK; FSDP_ERR_ARG, recorded: the tensor cannot be divided as it says, or says so without FSDP_TENSOR_TP. */
fsdp_status fsdpi_tp_check(const fsdp_model *model, const char *unit, const fsdp_tensor *tensor);

/** What fsdpi_tp_check() has found good: sets shapes, counts and rows. */
void fsdpi_tp_divide(const fsdp_model *model, const fsdp_tensor *described, fsdpi_tensor *tensor);

#endif
