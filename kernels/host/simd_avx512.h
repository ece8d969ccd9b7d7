/**
 * @file
 * What the kernels need of the instruction set, in AVX-512 (F, BW, VL, DQ). simd_avx2.h has the same names.
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_AVX512_H
#define FSDPI_KERNELS_HOST_SIMD_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "fsdp/dtype.h"

#define SIMD_BYTES  64
#define SIMD_INLINE static inline __attribute__((always_inline))

typedef __m512i simd;      /* lanes of any type */
typedef __m256i simd_half; /* half as many BYTES: as many lanes of 16 bits as `simd` has of 32 */
typedef __m512  simd_f32;
typedef __m512d simd_f64;

/** `to` is aligned to SIMD_BYTES. */
SIMD_INLINE void simd_store_past_caches(void *to, simd x)
{
    _mm512_stream_si512(to, x);
}

#include "kernels/host/simd_x86.h"

SIMD_INLINE simd_f32 simd_f32_splat(float value)
{
    return _mm512_set1_ps(value);
}

SIMD_INLINE simd_f64 simd_f64_splat(double value)
{
    return _mm512_set1_pd(value);
}

SIMD_INLINE simd_f32 simd_f32_sqrt(simd_f32 x)
{
    return _mm512_sqrt_ps(x);
}

/** 1 where `x` is above 0, -1 where it is below, else `x`: a zero or a NaN. */
SIMD_INLINE simd_f32 simd_f32_sign(simd_f32 x)
{
    __m512    minus_zero = _mm512_set1_ps(-0.0F);
    __m512    one        = _mm512_or_ps(_mm512_and_ps(x, minus_zero), _mm512_set1_ps(1));
    __mmask16 not_zero   = _mm512_cmp_ps_mask(x, minus_zero, _CMP_NEQ_OQ);

    return _mm512_mask_blend_ps(not_zero, x, one);
}

/** Makes signaling NaNs quiet. */
SIMD_INLINE simd_f32 simd_f32_quiet(simd_f32 x)
{
    __m512i bits = _mm512_castps_si512(x);

    return _mm512_castsi512_ps(
        _mm512_mask_or_epi32(bits, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), bits, _mm512_set1_epi32(0x00400000)));
}

SIMD_INLINE simd_f32 simd_f32_from_bf16(simd_half bits)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

SIMD_INLINE simd_f32 simd_f32_from_f16(simd_half bits)
{
    return _mm512_cvtph_ps(bits);
}

/**
 * Rounds to bf16, which is the upper half of each lane; the lower half is left over. Not by AVX512_BF16's own
 * conversion: it takes subnormals for zero.
 */
SIMD_INLINE simd simd_bf16_round(simd_f32 x)
{
    __m512i bits    = _mm512_castps_si512(x);
    __m512i odd     = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);

    return _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), bits, _mm512_set1_epi32(0x00400000));
}

SIMD_INLINE simd_half simd_bf16_from_f32(simd_f32 x)
{
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(simd_bf16_round(x), 16));
}

/* In the masked form with every lane: unoptimized, GCC 12's plain form warns about its own text (-Wsign-conversion). */
SIMD_INLINE simd_half simd_f16_from_f32(simd_f32 x)
{
    return _mm512_maskz_cvtps_ph(0xffff, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Of pairs of bf16, the ones at even places and at odd places: no lane has to cross the vector. */

SIMD_INLINE simd_f32 simd_f32_from_even_bf16(simd bits)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
}

SIMD_INLINE simd_f32 simd_f32_from_odd_bf16(simd bits)
{
    return _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32((int)0xffff0000)));
}

SIMD_INLINE simd simd_bf16_from_even_odd(simd_f32 even, simd_f32 odd)
{
    return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(simd_bf16_round(even), 16), simd_bf16_round(odd));
}

SIMD_INLINE simd_f64 simd_f64_low(simd_f32 x)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}

SIMD_INLINE simd_f64 simd_f64_high(simd_f32 x)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}

/** As many f32 as a vector has of f64. */
SIMD_INLINE simd_f64 simd_f64_from_f32(const void *p)
{
    return _mm512_cvtps_pd(_mm256_loadu_ps(p));
}

/** Rounded once: c + a b and c - a b. */
SIMD_INLINE simd_f64 simd_f64_add_product(simd_f64 c, simd_f64 a, simd_f64 b)
{
    return _mm512_fmadd_pd(a, b, c);
}

SIMD_INLINE simd_f32 simd_f32_add_product(simd_f32 c, simd_f32 a, simd_f32 b)
{
    return _mm512_fmadd_ps(a, b, c);
}

SIMD_INLINE simd_f64 simd_f64_subtract_product(simd_f64 c, simd_f64 a, simd_f64 b)
{
    return _mm512_fnmadd_pd(a, b, c);
}

/** Both halves narrowed to nearest even. */
SIMD_INLINE simd_f32 simd_f32_join(simd_f64 low, simd_f64 high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1);
}

/** Narrows towards zero and sets the last bit of what is not exact: another rounding to fewer bits is then correct. */
SIMD_INLINE __m256 simd_narrow_to_odd(__m512d x)
{
    __m256   shorter = _mm512_cvt_roundpd_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    __m256i  bits    = _mm256_castps_si256(shorter);
    __mmask8 inexact = _mm512_cmp_pd_mask(_mm512_cvtps_pd(shorter), x, _CMP_NEQ_OQ);

    return _mm256_castsi256_ps(_mm256_mask_or_epi32(bits, inexact, bits, _mm256_set1_epi32(1)));
}

SIMD_INLINE simd_f32 simd_f32_join_to_odd(simd_f64 low, simd_f64 high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(simd_narrow_to_odd(low)), simd_narrow_to_odd(high), 1);
}

/* The minimum instruction yields its second operand where either is NaN or both are equal: `a` stays then, unless `x`
 * is the NaN. */

SIMD_INLINE simd_f64 simd_f64_min(simd_f64 a, simd_f64 x)
{
    return _mm512_mask_mov_pd(_mm512_min_pd(x, a), _mm512_cmp_pd_mask(x, x, _CMP_UNORD_Q), x);
}

SIMD_INLINE simd_f64 simd_f64_max(simd_f64 a, simd_f64 x)
{
    return _mm512_mask_mov_pd(_mm512_max_pd(x, a), _mm512_cmp_pd_mask(x, x, _CMP_UNORD_Q), x);
}

SIMD_INLINE simd_f32 simd_f32_min(simd_f32 a, simd_f32 x)
{
    return _mm512_mask_mov_ps(_mm512_min_ps(x, a), _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
}

SIMD_INLINE simd_f32 simd_f32_max(simd_f32 a, simd_f32 x)
{
    return _mm512_mask_mov_ps(_mm512_max_ps(x, a), _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
}

SIMD_INLINE simd simd_i64_min(simd a, simd x)
{
    return _mm512_min_epi64(a, x);
}

SIMD_INLINE simd simd_i64_max(simd a, simd x)
{
    return _mm512_max_epi64(a, x);
}

SIMD_INLINE simd simd_i32_min(simd a, simd x)
{
    return _mm512_min_epi32(a, x);
}

SIMD_INLINE simd simd_i32_max(simd a, simd x)
{
    return _mm512_max_epi32(a, x);
}

SIMD_INLINE simd simd_u32_min(simd a, simd x)
{
    return _mm512_min_epu32(a, x);
}

SIMD_INLINE simd simd_u8_min(simd a, simd x)
{
    return _mm512_min_epu8(a, x);
}

SIMD_INLINE simd simd_u8_max(simd a, simd x)
{
    return _mm512_max_epu8(a, x);
}

/** Loads fewer BYTES than a vector has, touching nothing outside; the others are 0. */
SIMD_INLINE simd simd_load_bytes(const void *p, size_t bytes)
{
    return _mm512_maskz_loadu_epi8(((__mmask64)1 << bytes) - 1, p);
}

SIMD_INLINE void simd_store_bytes(void *p, simd x, size_t bytes)
{
    _mm512_mask_storeu_epi8(p, ((__mmask64)1 << bytes) - 1, x);
}

/** memcpy() for the few bytes of a tail: no call. */
SIMD_INLINE void simd_copy_tail(void *out, const void *in, size_t bytes)
{
    char       *to   = out;
    const char *from = in;

    for (; bytes >= SIMD_BYTES; bytes -= SIMD_BYTES, to += SIMD_BYTES, from += SIMD_BYTES) {
        _mm512_storeu_si512(to, _mm512_loadu_si512(from));
    }
    simd_store_bytes(to, simd_load_bytes(from, bytes), bytes);
}

SIMD_INLINE simd_half simd_low_half(simd x)
{
    return _mm512_castsi512_si256(x);
}

SIMD_INLINE simd simd_from_halves(simd_half low, simd_half high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

SIMD_INLINE simd simd_from_half(simd_half x)
{
    return _mm512_castsi256_si512(x);
}

#endif
