/**
 * @file
 * Multiplication by one factor in place. Included once per instruction set.
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_SCALE_H
#define FSDPI_KERNELS_HOST_SIMD_SCALE_H

#include "kernels/host/simd.h"

SIMD_INLINE void scale_by(char *x, simd factor, size_t count, fsdp_dtype dtype)
{
    size_t lanes = simd_lanes(dtype);
    size_t bytes = fsdpi_element_bytes(dtype);
    size_t i     = 0;

    for (; count - i >= lanes; i += lanes) {
        simd_store(x + i * bytes, simd_multiply(simd_load(x + i * bytes, dtype), factor, dtype), dtype);
    }
    if (i < count) {
        simd tail = simd_load_tail(x + i * bytes, count - i, dtype);

        simd_store_tail(x + i * bytes, simd_multiply(tail, factor, dtype), count - i, dtype);
    }
}

static void scale(void *x, double factor, size_t count, fsdp_dtype dtype)
{
    if (dtype == FSDP_F64) {
        scale_by(x, (simd)simd_f64_splat(factor), count, FSDP_F64);
    } else if (dtype == FSDP_F32) {
        scale_by(x, (simd)simd_f32_splat((float)factor), count, FSDP_F32);
    } else if (dtype == FSDP_BF16) {
        scale_by(x, (simd)simd_f32_splat((float)factor), count, FSDP_BF16);
    } else {
        scale_by(x, (simd)simd_f32_splat((float)factor), count, FSDP_F16);
    }
}

#endif
