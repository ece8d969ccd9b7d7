/**
 * @file
 * What the kernels need of the instruction set, in the NEON that every 64-bit Arm processor has (Armv8.0, little endian).
 * simd_avx2.h has the same names.
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_NEON_H
#define FSDPI_KERNELS_HOST_SIMD_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fsdp/dtype.h"
#include "kernels/host/simd_tail.h"

#define SIMD_BYTES  16
#define SIMD_INLINE static inline __attribute__((always_inline))

typedef uint32x4_t  simd;      /* lanes of any type */
typedef uint16x4_t  simd_half; /* half as many BYTES: as many lanes of 16 bits as `simd` has of 32 */
typedef float32x4_t simd_f32;
typedef float64x2_t simd_f64;

#define SIMD_PAST_BYTES  32
#define SIMD_VISIT_BYTES 64 /* a whole line, so that its parts can leave the core together */

/* What STNP writes: the halves of a vector, or two vectors. */
typedef struct simd_halves {
    uint64x1_t low, high;
} __attribute__((may_alias)) simd_halves;

typedef struct simd_two {
    simd first, second;
} __attribute__((may_alias)) simd_two;

/*
 * STNP, which stores two registers, is the one store that says that the line will not be read soon. It is a hint: a core
 * may take it for an ordinary store. Else it is ordered as one, so that a release makes it visible.
 */

/** `to` is aligned to SIMD_BYTES. */
SIMD_INLINE void simd_store_past_caches(void *to, simd x)
{
    const uint64x2_t bits = vreinterpretq_u64_u32(x);

    __asm__("stnp %d1, %d2, %0" : "=Q"(*(simd_halves *)to) : "w"(vget_low_u64(bits)), "w"(vget_high_u64(bits)));
}

SIMD_INLINE void simd_store_two_past_caches(void *to, simd first, simd second)
{
    __asm__("stnp %q1, %q2, %0" : "=Q"(*(simd_two *)to) : "w"(first), "w"(second));
}

SIMD_INLINE void simd_copy_past_caches(void *to, const void *from)
{
    simd_two x;

    memcpy(&x, from, sizeof x);
    simd_store_two_past_caches(to, x.first, x.second);
}

/** Afterwards a release makes visible what went past the caches. */
SIMD_INLINE void simd_end_past_caches(void)
{
}

SIMD_INLINE simd_f32 simd_f32_splat(float value)
{
    return vdupq_n_f32(value);
}

SIMD_INLINE simd_f64 simd_f64_splat(double value)
{
    return vdupq_n_f64(value);
}

SIMD_INLINE simd_f32 simd_f32_sqrt(simd_f32 x)
{
    return vsqrtq_f32(x);
}

/** 1 where `x` is above 0, -1 where it is below, else `x`: a zero or a NaN. */
SIMD_INLINE simd_f32 simd_f32_sign(simd_f32 x)
{
    uint32x4_t  not_zero = vcagtq_f32(x, vdupq_n_f32(0));
    float32x4_t one      = vbslq_f32(vdupq_n_u32(0x80000000), x, vdupq_n_f32(1));

    return vbslq_f32(not_zero, one, x);
}

/** Makes signaling NaNs quiet. */
SIMD_INLINE simd_f32 simd_f32_quiet(simd_f32 x)
{
    uint32x4_t bits = vreinterpretq_u32_f32(x);

    return vbslq_f32(vceqq_f32(x, x), x, vreinterpretq_f32_u32(vorrq_u32(bits, vdupq_n_u32(0x00400000))));
}

SIMD_INLINE simd_f32 simd_f32_from_bf16(simd_half bits)
{
    return vreinterpretq_f32_u32(vshll_n_u16(bits, 16));
}

SIMD_INLINE simd_f32 simd_f32_from_f16(simd_half bits)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(bits));
}

/**
 * Rounds to bf16, which is the upper half of each lane; the lower half is left over. Not by BFCVTN, which only newer
 * processors have (FEAT_BF16).
 */
SIMD_INLINE simd simd_bf16_round(simd_f32 x)
{
    uint32x4_t bits    = vreinterpretq_u32_f32(x);
    uint32x4_t odd     = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
    uint32x4_t quiet   = vorrq_u32(bits, vdupq_n_u32(0x00400000));

    return vbslq_u32(vceqq_f32(x, x), rounded, quiet);
}

SIMD_INLINE simd_half simd_bf16_from_f32(simd_f32 x)
{
    return vshrn_n_u32(simd_bf16_round(x), 16);
}

SIMD_INLINE simd_half simd_f16_from_f32(simd_f32 x)
{
    return vreinterpret_u16_f16(vcvt_f16_f32(x));
}

/* Of pairs of bf16, the ones at even places and at odd places: no lane has to cross the vector. */

SIMD_INLINE simd_f32 simd_f32_from_even_bf16(simd bits)
{
    return vreinterpretq_f32_u32(vshlq_n_u32(bits, 16));
}

SIMD_INLINE simd_f32 simd_f32_from_odd_bf16(simd bits)
{
    return vreinterpretq_f32_u32(vandq_u32(bits, vdupq_n_u32(0xffff0000)));
}

SIMD_INLINE simd simd_bf16_from_even_odd(simd_f32 even, simd_f32 odd)
{
    return vsriq_n_u32(simd_bf16_round(odd), simd_bf16_round(even), 16);
}

SIMD_INLINE simd_f64 simd_f64_low(simd_f32 x)
{
    return vcvt_f64_f32(vget_low_f32(x));
}

SIMD_INLINE simd_f64 simd_f64_high(simd_f32 x)
{
    return vcvt_high_f64_f32(x);
}

/** As many f32 as a vector has of f64. */
SIMD_INLINE simd_f64 simd_f64_from_f32(const void *p)
{
    float32x2_t x;

    memcpy(&x, p, sizeof x);
    return vcvt_f64_f32(x);
}

/** Rounded once: c + a b and c - a b. */
SIMD_INLINE simd_f64 simd_f64_add_product(simd_f64 c, simd_f64 a, simd_f64 b)
{
    return vfmaq_f64(c, a, b);
}

SIMD_INLINE simd_f32 simd_f32_add_product(simd_f32 c, simd_f32 a, simd_f32 b)
{
    return vfmaq_f32(c, a, b);
}

SIMD_INLINE simd_f64 simd_f64_subtract_product(simd_f64 c, simd_f64 a, simd_f64 b)
{
    return vfmsq_f64(c, a, b);
}

/** Both halves narrowed to nearest even. */
SIMD_INLINE simd_f32 simd_f32_join(simd_f64 low, simd_f64 high)
{
    return vcvt_high_f32_f64(vcvt_f32_f64(low), high);
}

/** Narrows towards zero and sets the last bit of what is not exact: another rounding to fewer bits is then correct. */
SIMD_INLINE simd_f32 simd_f32_join_to_odd(simd_f64 low, simd_f64 high)
{
    return vcvtx_high_f32_f64(vcvtx_f32_f64(low), high);
}

/* Not by FMIN and FMAX, for which -0 is less than 0: `a` stays where both are equal, and unless `x` is the only NaN. */

SIMD_INLINE simd_f64 simd_f64_min(simd_f64 a, simd_f64 x)
{
    return vbslq_f64(vornq_u64(vcgeq_f64(x, a), vceqq_f64(a, a)), a, x);
}

SIMD_INLINE simd_f64 simd_f64_max(simd_f64 a, simd_f64 x)
{
    return vbslq_f64(vornq_u64(vcleq_f64(x, a), vceqq_f64(a, a)), a, x);
}

SIMD_INLINE simd_f32 simd_f32_min(simd_f32 a, simd_f32 x)
{
    return vbslq_f32(vornq_u32(vcgeq_f32(x, a), vceqq_f32(a, a)), a, x);
}

SIMD_INLINE simd_f32 simd_f32_max(simd_f32 a, simd_f32 x)
{
    return vbslq_f32(vornq_u32(vcleq_f32(x, a), vceqq_f32(a, a)), a, x);
}

SIMD_INLINE simd simd_i64_min(simd a, simd x)
{
    return vbslq_u32((simd)vcgtq_s64((int64x2_t)a, (int64x2_t)x), x, a);
}

SIMD_INLINE simd simd_i64_max(simd a, simd x)
{
    return vbslq_u32((simd)vcgtq_s64((int64x2_t)x, (int64x2_t)a), x, a);
}

SIMD_INLINE simd simd_i32_min(simd a, simd x)
{
    return (simd)vminq_s32((int32x4_t)a, (int32x4_t)x);
}

SIMD_INLINE simd simd_i32_max(simd a, simd x)
{
    return (simd)vmaxq_s32((int32x4_t)a, (int32x4_t)x);
}

SIMD_INLINE simd simd_u32_min(simd a, simd x)
{
    return vminq_u32(a, x);
}

SIMD_INLINE simd simd_u8_min(simd a, simd x)
{
    return (simd)vminq_u8((uint8x16_t)a, (uint8x16_t)x);
}

SIMD_INLINE simd simd_u8_max(simd a, simd x)
{
    return (simd)vmaxq_u8((uint8x16_t)a, (uint8x16_t)x);
}

/** Loads fewer BYTES than a vector has, touching nothing outside; the others are 0. */
SIMD_INLINE simd simd_load_bytes(const void *p, size_t bytes)
{
    simd x = vdupq_n_u32(0);

    simd_copy_tail(&x, p, bytes);
    return x;
}

SIMD_INLINE void simd_store_bytes(void *p, simd x, size_t bytes)
{
    simd_copy_tail(p, &x, bytes);
}

SIMD_INLINE simd_half simd_low_half(simd x)
{
    return vget_low_u16(vreinterpretq_u16_u32(x));
}

SIMD_INLINE simd simd_from_halves(simd_half low, simd_half high)
{
    return vreinterpretq_u32_u16(vcombine_u16(low, high));
}

SIMD_INLINE simd simd_from_half(simd_half x)
{
    return vreinterpretq_u32_u16(vcombine_u16(x, vdup_n_u16(0)));
}

#endif
