/**
 * @file
 * Vectors of every element type, on top of simd_avx2.h, simd_avx512.h or simd_neon.h, one of which is included before.
 *
 * bf16 and f16 exist in memory only: in a vector they are f32. Where `dtype` and `op` are constants, as they are in
 * every caller, the switches here fold away.
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_H
#define FSDPI_KERNELS_HOST_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/host/element.h"

#define SIMD_PAGE_BYTES ((size_t)4096)

/** A large function that is not to be inlined: the registers and the stack that it needs would burden its caller. */
#define SIMD_APART static __attribute__((noinline))

/* Unsigned lanes, in which sums and products wrap. */
typedef uint64_t simd_u64 __attribute__((vector_size(SIMD_BYTES)));
typedef uint32_t simd_u32 __attribute__((vector_size(SIMD_BYTES)));
typedef uint8_t  simd_u8 __attribute__((vector_size(SIMD_BYTES)));

/** Elements in a vector. */
SIMD_INLINE size_t simd_lanes(fsdp_dtype dtype)
{
    switch (dtype) {
    case FSDP_F64:
    case FSDP_I64:
        return SIMD_BYTES / 8;
    case FSDP_F32:
    case FSDP_BF16:
    case FSDP_F16:
    case FSDP_I32:
        return SIMD_BYTES / 4;
    case FSDP_U8:
        return SIMD_BYTES;
    }
    return 0;
}

SIMD_INLINE simd_f64 simd_f64_load(const void *p)
{
    simd_f64 x;

    memcpy(&x, p, sizeof x);
    return x;
}

SIMD_INLINE simd simd_load_any(const void *p)
{
    simd x;

    memcpy(&x, p, sizeof x);
    return x;
}

SIMD_INLINE simd_half simd_load_half(const void *p)
{
    simd_half x;

    memcpy(&x, p, sizeof x);
    return x;
}

SIMD_INLINE simd simd_load(const void *p, fsdp_dtype dtype)
{
    if (dtype == FSDP_BF16) {
        return (simd)simd_f32_from_bf16(simd_load_half(p));
    }
    if (dtype == FSDP_F16) {
        return (simd)simd_f32_from_f16(simd_load_half(p));
    }
    return simd_load_any(p);
}

SIMD_INLINE void simd_store(void *p, simd x, fsdp_dtype dtype)
{
    simd_half half;

    if (dtype != FSDP_BF16 && dtype != FSDP_F16) {
        memcpy(p, &x, sizeof x);
        return;
    }
    half = dtype == FSDP_BF16 ? simd_bf16_from_f32((simd_f32)x) : simd_f16_from_f32((simd_f32)x);
    memcpy(p, &half, sizeof half);
}

/** Loads `count` elements, fewer than a vector has; the other lanes are 0. */
SIMD_INLINE simd simd_load_tail(const void *p, size_t count, fsdp_dtype dtype)
{
    simd x = simd_load_bytes(p, count * fsdpi_element_bytes(dtype));

    if (dtype == FSDP_BF16) {
        return (simd)simd_f32_from_bf16(simd_low_half(x));
    }
    if (dtype == FSDP_F16) {
        return (simd)simd_f32_from_f16(simd_low_half(x));
    }
    return x;
}

SIMD_INLINE void simd_store_tail(void *p, simd x, size_t count, fsdp_dtype dtype)
{
    if (dtype == FSDP_BF16) {
        x = simd_from_half(simd_bf16_from_f32((simd_f32)x));
    }
    if (dtype == FSDP_F16) {
        x = simd_from_half(simd_f16_from_f32((simd_f32)x));
    }
    simd_store_bytes(p, x, count * fsdpi_element_bytes(dtype));
}

/** Two vectors' worth of consecutive elements, in the order of lanes that suits the type. */
typedef struct simd_pair {
    simd first;
    simd second;
} simd_pair;

SIMD_INLINE simd_pair simd_load_pair(const char *p, fsdp_dtype dtype)
{
    size_t    step = simd_lanes(dtype) * fsdpi_element_bytes(dtype);
    simd_pair x;

    if (dtype == FSDP_BF16) {
        x.first  = (simd)simd_f32_from_even_bf16(simd_load_any(p));
        x.second = (simd)simd_f32_from_odd_bf16(simd_load_any(p));
    } else {
        x.first  = simd_load(p, dtype);
        x.second = simd_load(p + step, dtype);
    }
    return x;
}

SIMD_INLINE void simd_store_pair(char *p, simd_pair x, fsdp_dtype dtype)
{
    size_t step = simd_lanes(dtype) * fsdpi_element_bytes(dtype);
    simd   both;

    if (dtype == FSDP_BF16) {
        both = simd_bf16_from_even_odd((simd_f32)x.first, (simd_f32)x.second);
        memcpy(p, &both, sizeof both);
    } else {
        simd_store(p, x.first, dtype);
        simd_store(p + step, x.second, dtype);
    }
}

/** The same past the caches; `p` is aligned to SIMD_BYTES. */
SIMD_INLINE void simd_store_pair_past_caches(char *p, simd_pair x, fsdp_dtype dtype)
{
    if (dtype == FSDP_BF16) {
        simd_store_past_caches(p, simd_bf16_from_even_odd((simd_f32)x.first, (simd_f32)x.second));
    } else if (dtype == FSDP_F16) {
        simd_store_past_caches(
            p, simd_from_halves(simd_f16_from_f32((simd_f32)x.first), simd_f16_from_f32((simd_f32)x.second)));
    } else {
        simd_store_two_past_caches(p, x.first, x.second);
    }
}

SIMD_INLINE simd simd_add(simd a, simd x, fsdp_dtype dtype)
{
    switch (dtype) {
    case FSDP_F64:
        return (simd)((simd_f64)a + (simd_f64)x);
    case FSDP_F32:
    case FSDP_BF16:
    case FSDP_F16:
        return (simd)((simd_f32)a + (simd_f32)x);
    case FSDP_I64:
        return (simd)((simd_u64)a + (simd_u64)x);
    case FSDP_I32:
        return (simd)((simd_u32)a + (simd_u32)x);
    case FSDP_U8:
        return (simd)((simd_u8)a + (simd_u8)x);
    }
    return a;
}

SIMD_INLINE simd simd_multiply(simd a, simd x, fsdp_dtype dtype)
{
    switch (dtype) {
    case FSDP_F64:
        return (simd)((simd_f64)a * (simd_f64)x);
    case FSDP_F32:
    case FSDP_BF16:
    case FSDP_F16:
        return (simd)((simd_f32)a * (simd_f32)x);
    case FSDP_I64:
        return (simd)((simd_u64)a * (simd_u64)x);
    case FSDP_I32:
        return (simd)((simd_u32)a * (simd_u32)x);
    case FSDP_U8:
        return (simd)((simd_u8)a * (simd_u8)x);
    }
    return a;
}

SIMD_INLINE simd simd_min(simd a, simd x, fsdp_dtype dtype)
{
    switch (dtype) {
    case FSDP_F64:
        return (simd)simd_f64_min((simd_f64)a, (simd_f64)x);
    case FSDP_F32:
    case FSDP_BF16:
    case FSDP_F16:
        return (simd)simd_f32_min((simd_f32)a, (simd_f32)x);
    case FSDP_I64:
        return simd_i64_min(a, x);
    case FSDP_I32:
        return simd_i32_min(a, x);
    case FSDP_U8:
        return simd_u8_min(a, x);
    }
    return a;
}

SIMD_INLINE simd simd_max(simd a, simd x, fsdp_dtype dtype)
{
    switch (dtype) {
    case FSDP_F64:
        return (simd)simd_f64_max((simd_f64)a, (simd_f64)x);
    case FSDP_F32:
    case FSDP_BF16:
    case FSDP_F16:
        return (simd)simd_f32_max((simd_f32)a, (simd_f32)x);
    case FSDP_I64:
        return simd_i64_max(a, x);
    case FSDP_I32:
        return simd_i32_max(a, x);
    case FSDP_U8:
        return simd_u8_max(a, x);
    }
    return a;
}

#endif
