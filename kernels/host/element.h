/**
 * @file
 * The size of an element for code below lib/, where fsdp_dtype_size() is out of reach; and elements at any address.
 */
#ifndef FSDPI_KERNELS_HOST_ELEMENT_H
#define FSDPI_KERNELS_HOST_ELEMENT_H

#include <stddef.h>
#include <stdint.h>

#include "fsdp/dtype.h"

/* What a pointer to elements of a caller points to: aligned to nothing, and perhaps stored as another type. */
#define FSDPI_ANYWHERE __attribute__((aligned(1), may_alias))
typedef double fsdpi_any_f64    FSDPI_ANYWHERE;
typedef float fsdpi_any_f32     FSDPI_ANYWHERE;
typedef uint16_t fsdpi_any_half FSDPI_ANYWHERE; /* the bits of bf16 or f16 */
typedef int64_t fsdpi_any_i64   FSDPI_ANYWHERE;
typedef int32_t fsdpi_any_i32   FSDPI_ANYWHERE;
#undef FSDPI_ANYWHERE

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
