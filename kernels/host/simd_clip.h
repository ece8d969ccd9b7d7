/**
 * @file
 * What gradient clipping needs beside the squared norm: the largest magnitude, and limiting each element. Included once
 * per instruction set.
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_CLIP_H
#define FSDPI_KERNELS_HOST_SIMD_CLIP_H

#include "kernels/host/simd.h"

/* Without their signs, floating-point numbers are in the order of their bits read as integers, NaN above infinity. */

SIMD_INLINE simd larger_magnitude(simd most, simd x, fsdp_dtype dtype)
{
    if (dtype == FSDP_F64) {
        return simd_i64_max(most, x & ~(simd)simd_f64_splat(-0.0));
    }
    return simd_i32_max(most, x & ~(simd)simd_f32_splat(-0.0F));
}

static double largest_lane_f64(simd x)
{
    int64_t lanes[SIMD_BYTES / 8];
    double  value;

    memcpy(lanes, &x, sizeof lanes);
    for (size_t i = 1; i < SIMD_BYTES / 8; i++) {
        lanes[0] = lanes[i] > lanes[0] ? lanes[i] : lanes[0];
    }
    memcpy(&value, &lanes[0], sizeof value);
    return value;
}

static double largest_lane_f32(simd x)
{
    int32_t lanes[SIMD_BYTES / 4];
    float   value;

    memcpy(lanes, &x, sizeof lanes);
    for (size_t i = 1; i < SIMD_BYTES / 4; i++) {
        lanes[0] = lanes[i] > lanes[0] ? lanes[i] : lanes[0];
    }
    memcpy(&value, &lanes[0], sizeof value);
    return (double)value;
}

SIMD_INLINE double absolute_maximum_of(const char *x, size_t count, fsdp_dtype dtype)
{
    size_t lanes = simd_lanes(dtype);
    size_t bytes = fsdpi_element_bytes(dtype);
    size_t i     = 0;
    simd   most  = {0};

    for (; count - i >= lanes; i += lanes) {
        most = larger_magnitude(most, simd_load(x + i * bytes, dtype), dtype);
    }
    if (i < count) {
        most = larger_magnitude(most, simd_load_tail(x + i * bytes, count - i, dtype), dtype);
    }
    return dtype == FSDP_F64 ? largest_lane_f64(most) : largest_lane_f32(most);
}

static double absolute_maximum(const void *x, size_t count, fsdp_dtype dtype)
{
    if (dtype == FSDP_F64) {
        return absolute_maximum_of(x, count, FSDP_F64);
    }
    if (dtype == FSDP_F32) {
        return absolute_maximum_of(x, count, FSDP_F32);
    }
    if (dtype == FSDP_BF16) {
        return absolute_maximum_of(x, count, FSDP_BF16);
    }
    return absolute_maximum_of(x, count, FSDP_F16);
}

/* In simd_min() and simd_max() the first operand stays where it is NaN or equal to the second, as the definition has it. */
SIMD_INLINE void clamp_to(char *x, simd low, simd high, size_t count, fsdp_dtype dtype)
{
    size_t lanes = simd_lanes(dtype);
    size_t bytes = fsdpi_element_bytes(dtype);
    size_t i     = 0;

    for (; count - i >= lanes; i += lanes) {
        simd value = simd_load(x + i * bytes, dtype);

        simd_store(x + i * bytes, simd_min(simd_max(value, low, dtype), high, dtype), dtype);
    }
    if (i < count) {
        simd tail = simd_load_tail(x + i * bytes, count - i, dtype);

        simd_store_tail(x + i * bytes, simd_min(simd_max(tail, low, dtype), high, dtype), count - i, dtype);
    }
}

static void clamp(void *x, double limit, size_t count, fsdp_dtype dtype)
{
    const simd low = (simd)simd_f32_splat(-(float)limit), high = (simd)simd_f32_splat((float)limit);

    if (dtype == FSDP_F64) {
        clamp_to(x, (simd)simd_f64_splat(-limit), (simd)simd_f64_splat(limit), count, FSDP_F64);
    } else if (dtype == FSDP_F32) {
        clamp_to(x, low, high, count, FSDP_F32);
    } else if (dtype == FSDP_BF16) {
        clamp_to(x, low, high, count, FSDP_BF16);
    } else {
        clamp_to(x, low, high, count, FSDP_F16);
    }
}

#endif
