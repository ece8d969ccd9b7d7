/**
 * @file
 * Adding up in f32, with one factor. Included once per instruction set.
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_ACCUMULATE_H
#define FSDPI_KERNELS_HOST_SIMD_ACCUMULATE_H

#include "kernels/host/simd.h"

SIMD_INLINE void accumulate_from(float *sum, bool fresh, const char *x, fsdp_dtype dtype, float factor, size_t count)
{
    const simd   by    = (simd)simd_f32_splat(factor);
    const size_t lanes = simd_lanes(FSDP_F32), bytes = fsdpi_element_bytes(dtype);
    size_t       i = 0;

    for (; count - i >= lanes; i += lanes) {
        const simd term = simd_multiply(simd_load(x + i * bytes, dtype), by, FSDP_F32);

        simd_store(sum + i, fresh ? term : simd_add(simd_load(sum + i, FSDP_F32), term, FSDP_F32), FSDP_F32);
    }
    if (i < count) {
        const simd term = simd_multiply(simd_load_tail(x + i * bytes, count - i, dtype), by, FSDP_F32);
        const simd old  = simd_load_tail(sum + i, count - i, FSDP_F32);

        simd_store_tail(sum + i, fresh ? term : simd_add(old, term, FSDP_F32), count - i, FSDP_F32);
    }
}

static void accumulate(float *sum, bool fresh, const void *x, fsdp_dtype dtype, double factor, size_t count)
{
    if (dtype == FSDP_F32) {
        accumulate_from(sum, fresh, x, FSDP_F32, (float)factor, count);
    } else if (dtype == FSDP_BF16) {
        accumulate_from(sum, fresh, x, FSDP_BF16, (float)factor, count);
    } else {
        accumulate_from(sum, fresh, x, FSDP_F16, (float)factor, count);
    }
}

#endif
