/**
 * @file
 * The size of an element for code below lib/, where fsdp_dtype_size() is out of reach.
 */
#ifndef FSDPI_KERNELS_HOST_ELEMENT_H
#define FSDPI_KERNELS_HOST_ELEMENT_H

#include <stddef.h>

#include "fsdp/dtype.h"

/** BYTES of one element; folds to a constant where `dtype` is one. */
static inline size_t fsdpi_element_bytes(fsdp_dtype dtype)
{
    switch (dtype) {
#define ELEMENT_BYTES_CASE(name, value, text, bytes)                                                                   \
    case name:                                                                                                         \
        return (bytes);
        FSDP_DTYPE_LIST(ELEMENT_BYTES_CASE)
#undef ELEMENT_BYTES_CASE
    }
    return 0;
}

#endif
