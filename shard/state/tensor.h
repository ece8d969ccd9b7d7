/**
 * @file
 * Tensors of a model.
 */
#ifndef FSDPI_TENSOR_H
#define FSDPI_TENSOR_H

#include <stdbool.h>
#include <stddef.h>

#include "shard/state/model.h"

/** Whether a tensor has elements of its own that are divided over the ranks. */
static inline bool fsdpi_is_divided(const fsdpi_tensor *tensor)
{
    return tensor->owner == tensor && (tensor->flags & FSDP_TENSOR_IGNORED) == 0;
}

/** Element `at` of an array of a type. */
static inline unsigned char *fsdpi_element_of(unsigned char *array, size_t at, fsdp_dtype dtype)
{
    return array + at * fsdp_dtype_size(dtype);
}

/** The type in which a tensor is gathered or, ignored, held. */
fsdp_dtype fsdpi_gathered_dtype(const fsdp_model *model, const fsdpi_tensor *tensor);

/** The tensor that an entry of the model's names is part of; NULL for NULL. */
static inline fsdpi_tensor *fsdpi_tensor_of_name(fsdpi_name *entry)
{
    return entry != NULL ? (fsdpi_tensor *)(void *)((char *)entry - offsetof(fsdpi_tensor, entry)) : NULL;
}

/** A tensor of that name; NULL. */
fsdpi_tensor *fsdpi_find_tensor(const fsdp_model *model, const char *name);

#endif
