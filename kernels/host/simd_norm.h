/**
 * @file
 * The squared norm in its 16 lanes of f64. Included once per instruction set.
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_NORM_H
#define FSDPI_KERNELS_HOST_SIMD_NORM_H

#include "kernels/host/simd.h"

enum { NORM_LANES = 16, NORM_VECTORS = 8 * NORM_LANES / SIMD_BYTES };

/** Adds the squares of as many elements as two vectors of f64 have. */
SIMD_INLINE void norm_add_pair(simd_f64 *lanes, const char *x, fsdp_dtype dtype)
{
    simd_f64 low, high;

    if (dtype == FSDP_F64) {
        low  = simd_f64_load(x);
        high = simd_f64_load(x + SIMD_BYTES);
    } else {
        simd_f32 both = (simd_f32)simd_load(x, dtype);

        low  = simd_f64_low(both);
        high = simd_f64_high(both);
    }
    lanes[0] += low * low;
    lanes[1] += high * high;
}

/** BYTES from a pair of vectors to the next. */
SIMD_INLINE size_t norm_step(fsdp_dtype dtype)
{
    return simd_lanes(FSDP_F32) * fsdpi_element_bytes(dtype);
}

/** Adds the squares of 16 elements, one to each lane: two vectors of 8 lanes, four of 4 or eight of 2. */
SIMD_INLINE void norm_add(simd_f64 *lanes, const char *x, fsdp_dtype dtype)
{
    norm_add_pair(lanes, x, dtype);
    if (NORM_VECTORS > 2) {
        norm_add_pair(lanes + 2, x + norm_step(dtype), dtype);
    }
    if (NORM_VECTORS > 4) {
        norm_add_pair(lanes + 4, x + 2 * norm_step(dtype), dtype);
        norm_add_pair(lanes + 6, x + 3 * norm_step(dtype), dtype);
    }
}

/** A balanced tree: lane j += lane j + 8, then + 4, + 2, + 1. */
static double norm_tree(const simd_f64 *vectors)
{
    double lanes[NORM_LANES];

    memcpy(lanes, vectors, sizeof lanes);
    for (size_t width = NORM_LANES / 2; width > 0; width /= 2) {
        for (size_t j = 0; j < width; j++) {
            lanes[j] += lanes[j + width];
        }
    }
    return lanes[0];
}

SIMD_INLINE double squared_norm_of(const char *x, size_t count, fsdp_dtype dtype)
{
    char     whole[NORM_LANES * 8] = {0}; /* a zero adds nothing to a lane */
    simd_f64 lanes[NORM_VECTORS]   = {0};
    size_t   bytes                 = fsdpi_element_bytes(dtype);
    size_t   i                     = 0;

    for (; count - i >= NORM_LANES; i += NORM_LANES) {
        norm_add(lanes, x + i * bytes, dtype);
    }
    if (i < count) {
        simd_copy_tail(whole, x + i * bytes, (count - i) * bytes);
        norm_add(lanes, whole, dtype);
    }
    return norm_tree(lanes);
}

static double squared_norm(const void *x, size_t count, fsdp_dtype dtype)
{
    if (dtype == FSDP_F64) {
        return squared_norm_of(x, count, FSDP_F64);
    }
    if (dtype == FSDP_F32) {
        return squared_norm_of(x, count, FSDP_F32);
    }
    if (dtype == FSDP_BF16) {
        return squared_norm_of(x, count, FSDP_BF16);
    }
    return squared_norm_of(x, count, FSDP_F16);
}

#endif
