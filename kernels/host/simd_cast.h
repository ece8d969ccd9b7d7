/**
 * @file
 * Casts between the floating point types. Included once per instruction set.
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_CAST_H
#define FSDPI_KERNELS_HOST_SIMD_CAST_H

#include "kernels/host/simd.h"

/** As many elements as a vector of f32 has. */
SIMD_INLINE void cast_vector(char *out, fsdp_dtype out_dtype, const char *in, fsdp_dtype in_dtype)
{
    simd_f32 x;

    if (in_dtype == FSDP_F64 && out_dtype == FSDP_F32) {
        x = simd_f32_join(simd_f64_load(in), simd_f64_load(in + SIMD_BYTES));
    } else if (in_dtype == FSDP_F64) {
        x = simd_f32_join_to_odd(simd_f64_load(in), simd_f64_load(in + SIMD_BYTES));
    } else {
        x = (simd_f32)simd_load(in, in_dtype);
    }
    if (in_dtype == FSDP_BF16) { /* widened by a shift, which leaves NaNs as they are */
        x = simd_f32_quiet(x);
    }
    if (out_dtype != FSDP_F64) {
        simd_store(out, (simd)x, out_dtype);
        return;
    }
    simd_store(out, (simd)simd_f64_low(x), FSDP_F64);
    simd_store(out + SIMD_BYTES, (simd)simd_f64_high(x), FSDP_F64);
}

SIMD_INLINE void cast_between(char *out, fsdp_dtype out_dtype, const char *in, fsdp_dtype in_dtype, size_t count)
{
    _Alignas(SIMD_BYTES) char whole_out[2 * SIMD_BYTES];
    _Alignas(SIMD_BYTES) char whole_in[2 * SIMD_BYTES] = {0};
    size_t                    out_bytes                = fsdpi_element_bytes(out_dtype);
    size_t                    in_bytes                 = fsdpi_element_bytes(in_dtype);
    size_t                    lanes                    = simd_lanes(FSDP_F32);
    size_t                    i                        = 0;

    for (; count - i >= lanes; i += lanes) {
        cast_vector(out + i * out_bytes, out_dtype, in + i * in_bytes, in_dtype);
    }
    if (i == count) {
        return;
    }
    simd_copy_tail(whole_in, in + i * in_bytes, (count - i) * in_bytes);
    cast_vector(whole_out, out_dtype, whole_in, in_dtype);
    simd_copy_tail(out + i * out_bytes, whole_out, (count - i) * out_bytes);
}

static void cast_from_f64(char *out, fsdp_dtype out_dtype, const char *in, size_t count)
{
    if (out_dtype == FSDP_F32) {
        cast_between(out, FSDP_F32, in, FSDP_F64, count);
    } else if (out_dtype == FSDP_BF16) {
        cast_between(out, FSDP_BF16, in, FSDP_F64, count);
    } else {
        cast_between(out, FSDP_F16, in, FSDP_F64, count);
    }
}

static void cast_from_f32(char *out, fsdp_dtype out_dtype, const char *in, size_t count)
{
    if (out_dtype == FSDP_F64) {
        cast_between(out, FSDP_F64, in, FSDP_F32, count);
    } else if (out_dtype == FSDP_BF16) {
        cast_between(out, FSDP_BF16, in, FSDP_F32, count);
    } else {
        cast_between(out, FSDP_F16, in, FSDP_F32, count);
    }
}

static void cast_from_bf16(char *out, fsdp_dtype out_dtype, const char *in, size_t count)
{
    if (out_dtype == FSDP_F64) {
        cast_between(out, FSDP_F64, in, FSDP_BF16, count);
    } else if (out_dtype == FSDP_F32) {
        cast_between(out, FSDP_F32, in, FSDP_BF16, count);
    } else {
        cast_between(out, FSDP_F16, in, FSDP_BF16, count);
    }
}

static void cast_from_f16(char *out, fsdp_dtype out_dtype, const char *in, size_t count)
{
    if (out_dtype == FSDP_F64) {
        cast_between(out, FSDP_F64, in, FSDP_F16, count);
    } else if (out_dtype == FSDP_F32) {
        cast_between(out, FSDP_F32, in, FSDP_F16, count);
    } else {
        cast_between(out, FSDP_BF16, in, FSDP_F16, count);
    }
}

static void cast(void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype, size_t count)
{
    if (count == 0) {
        return;
    }
    if (out_dtype == in_dtype) {
        memcpy(out, in, count * fsdpi_element_bytes(in_dtype));
    } else if (in_dtype == FSDP_F64) {
        cast_from_f64(out, out_dtype, in, count);
    } else if (in_dtype == FSDP_F32) {
        cast_from_f32(out, out_dtype, in, count);
    } else if (in_dtype == FSDP_BF16) {
        cast_from_bf16(out, out_dtype, in, count);
    } else {
        cast_from_f16(out, out_dtype, in, count);
    }
}

#endif
