/**
 * @file
 * What the kernels need of the instruction set, in AVX2, FMA and F16C. simd_avx512.h and simd_neon.h have the same names.
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_AVX2_H
#define FSDPI_KERNELS_HOST_SIMD_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fsdp/dtype.h"
#include "kernels/host/simd_tail.h"

#define SIMD_BYTES  32
#define SIMD_INLINE static inline __attribute__((always_inline))

typedef __m256i simd;      /* lanes of any type */
typedef __m128i simd_half; /* half as many BYTES: as many lanes of 16 bits as `simd` has of 32 */
typedef __m256  simd_f32;
typedef __m256d simd_f64;

/** `to` is aligned to SIMD_BYTES. */
SIMD_INLINE void simd_store_past_caches(void *to, simd x)
{
    _mm256_stream_si256(to, x);
}

#include "kernels/host/simd_x86.h"

SIMD_INLINE simd_f32 simd_f32_splat(float value)
{
    return _mm256_set1_ps(value);
}

SIMD_INLINE simd_f64 simd_f64_splat(double value)
{
    return _mm256_set1_pd(value);
}

SIMD_INLINE simd_f32 simd_f32_sqrt(simd_f32 x)
{
    return _mm256_sqrt_ps(x);
}

/** 1 where `x` is above 0, -1 where it is below, else `x`: a zero or a NaN. */
SIMD_INLINE simd_f32 simd_f32_sign(simd_f32 x)
{
    __m256 minus_zero = _mm256_set1_ps(-0.0F);
    __m256 one        = _mm256_or_ps(_mm256_and_ps(x, minus_zero), _mm256_set1_ps(1));

    return _mm256_blendv_ps(x, one, _mm256_cmp_ps(x, minus_zero, _CMP_NEQ_OQ));
}

/** Makes signaling NaNs quiet. */
SIMD_INLINE simd_f32 simd_f32_quiet(simd_f32 x)
{
    __m256 quiet_bit = _mm256_castsi256_ps(_mm256_set1_epi32(0x00400000));

    return _mm256_or_ps(x, _mm256_and_ps(_mm256_cmp_ps(x, x, _CMP_UNORD_Q), quiet_bit));
}

SIMD_INLINE simd_f32 simd_f32_from_bf16(simd_half bits)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

SIMD_INLINE simd_f32 simd_f32_from_f16(simd_half bits)
{
    return _mm256_cvtph_ps(bits);
}

/** Rounds to bf16, which is the upper half of each lane; the lower half is left over. */
SIMD_INLINE simd simd_bf16_round(simd_f32 x)
{
    __m256i bits    = _mm256_castps_si256(x);
    __m256i odd     = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    __m256i quiet   = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
    __m256i is_nan  = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));

    return _mm256_blendv_epi8(rounded, quiet, is_nan);
}

SIMD_INLINE simd_half simd_bf16_from_f32(simd_f32 x)
{
    __m256i bits = _mm256_srli_epi32(simd_bf16_round(x), 16);

    return _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
}

SIMD_INLINE simd_half simd_f16_from_f32(simd_f32 x)
{
    return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Of pairs of bf16, the ones at even places and at odd places: no lane has to cross the vector. */

SIMD_INLINE simd_f32 simd_f32_from_even_bf16(simd bits)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
}

SIMD_INLINE simd_f32 simd_f32_from_odd_bf16(simd bits)
{
    return _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32((int)0xffff0000)));
}

SIMD_INLINE simd simd_bf16_from_even_odd(simd_f32 even, simd_f32 odd)
{
    return _mm256_blend_epi16(_mm256_srli_epi32(simd_bf16_round(even), 16), simd_bf16_round(odd), 0xaa);
}

SIMD_INLINE simd_f64 simd_f64_low(simd_f32 x)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}

SIMD_INLINE simd_f64 simd_f64_high(simd_f32 x)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}

/** As many f32 as a vector has of f64. */
SIMD_INLINE simd_f64 simd_f64_from_f32(const void *p)
{
    return _mm256_cvtps_pd(_mm_loadu_ps(p));
}

/** Rounded once: c + a b and c - a b. */
SIMD_INLINE simd_f64 simd_f64_add_product(simd_f64 c, simd_f64 a, simd_f64 b)
{
    return _mm256_fmadd_pd(a, b, c);
}

SIMD_INLINE simd_f32 simd_f32_add_product(simd_f32 c, simd_f32 a, simd_f32 b)
{
    return _mm256_fmadd_ps(a, b, c);
}

SIMD_INLINE simd_f64 simd_f64_subtract_product(simd_f64 c, simd_f64 a, simd_f64 b)
{
    return _mm256_fnmadd_pd(a, b, c);
}

/** Both halves narrowed to nearest even. */
SIMD_INLINE simd_f32 simd_f32_join(simd_f64 low, simd_f64 high)
{
    return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
}

/** The even 32 bit lanes of a mask of 64 bit lanes. */
SIMD_INLINE __m128i simd_half_mask(__m256d mask)
{
    __m128 low  = _mm_castpd_ps(_mm256_castpd256_pd128(mask));
    __m128 high = _mm_castpd_ps(_mm256_extractf128_pd(mask, 1));

    return _mm_castps_si128(_mm_shuffle_ps(low, high, 0x88));
}

/** Narrows towards zero and sets the last bit of what is not exact: another rounding to fewer bits is then correct. */
SIMD_INLINE __m128 simd_narrow_to_odd(__m256d x)
{
    __m128  nearest = _mm256_cvtpd_ps(x);
    __m256d back    = _mm256_cvtps_pd(nearest);
    __m256d sign    = _mm256_set1_pd(-0.0);
    __m256d beyond  = _mm256_cmp_pd(_mm256_andnot_pd(sign, back), _mm256_andnot_pd(sign, x), _CMP_GT_OQ);
    __m256d inexact = _mm256_cmp_pd(back, x, _CMP_NEQ_OQ);
    __m128i bits    = _mm_add_epi32(_mm_castps_si128(nearest), simd_half_mask(beyond)); /* one ulp down where beyond */

    return _mm_castsi128_ps(_mm_or_si128(bits, _mm_srli_epi32(simd_half_mask(inexact), 31)));
}

SIMD_INLINE simd_f32 simd_f32_join_to_odd(simd_f64 low, simd_f64 high)
{
    return _mm256_set_m128(simd_narrow_to_odd(high), simd_narrow_to_odd(low));
}

/* The minimum instruction yields its second operand where either is NaN or both are equal: `a` stays then, unless `x`
 * is the NaN. */

SIMD_INLINE simd_f64 simd_f64_min(simd_f64 a, simd_f64 x)
{
    return _mm256_blendv_pd(_mm256_min_pd(x, a), x, _mm256_cmp_pd(x, x, _CMP_UNORD_Q));
}

SIMD_INLINE simd_f64 simd_f64_max(simd_f64 a, simd_f64 x)
{
    return _mm256_blendv_pd(_mm256_max_pd(x, a), x, _mm256_cmp_pd(x, x, _CMP_UNORD_Q));
}

SIMD_INLINE simd_f32 simd_f32_min(simd_f32 a, simd_f32 x)
{
    return _mm256_blendv_ps(_mm256_min_ps(x, a), x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

SIMD_INLINE simd_f32 simd_f32_max(simd_f32 a, simd_f32 x)
{
    return _mm256_blendv_ps(_mm256_max_ps(x, a), x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

SIMD_INLINE simd simd_i64_min(simd a, simd x)
{
    return _mm256_blendv_epi8(a, x, _mm256_cmpgt_epi64(a, x));
}

SIMD_INLINE simd simd_i64_max(simd a, simd x)
{
    return _mm256_blendv_epi8(a, x, _mm256_cmpgt_epi64(x, a));
}

SIMD_INLINE simd simd_i32_min(simd a, simd x)
{
    return _mm256_min_epi32(a, x);
}

SIMD_INLINE simd simd_i32_max(simd a, simd x)
{
    return _mm256_max_epi32(a, x);
}

SIMD_INLINE simd simd_u32_min(simd a, simd x)
{
    return _mm256_min_epu32(a, x);
}

SIMD_INLINE simd simd_u8_min(simd a, simd x)
{
    return _mm256_min_epu8(a, x);
}

SIMD_INLINE simd simd_u8_max(simd a, simd x)
{
    return _mm256_max_epu8(a, x);
}

/** All ones in the first `words` lanes of 32 bits. */
SIMD_INLINE simd simd_first_words(size_t words)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)words), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/** Loads fewer BYTES than a vector has, touching nothing outside; the others are 0. */
SIMD_INLINE simd simd_load_bytes(const void *p, size_t bytes)
{
    size_t      words     = bytes / 4;
    const char *rest      = (const char *)p + 4 * words;
    simd        x         = _mm256_maskload_epi32(p, simd_first_words(words));
    simd        next_word = _mm256_andnot_si256(simd_first_words(words), simd_first_words(words + 1));
    uint32_t    last      = 0;

    if (bytes % 4 == 0) {
        return x;
    }
    memcpy(&last, rest, bytes % 4 == 1 ? 1 : 2);
    if (bytes % 4 == 3) {
        last |= (uint32_t)(uint8_t)rest[2] << 16;
    }
    return _mm256_or_si256(x, _mm256_and_si256(next_word, _mm256_set1_epi32((int)last)));
}

SIMD_INLINE void simd_store_bytes(void *p, simd x, size_t bytes)
{
    size_t words = bytes / 4;
    char   all[SIMD_BYTES];

    _mm256_maskstore_epi32(p, simd_first_words(words), x);
    if (bytes % 4 == 0) {
        return;
    }
    memcpy(all, &x, sizeof all);
    for (size_t i = 4 * words; i < bytes; i++) {
        ((char *)p)[i] = all[i];
    }
}

SIMD_INLINE simd_half simd_low_half(simd x)
{
    return _mm256_castsi256_si128(x);
}

SIMD_INLINE simd simd_from_halves(simd_half low, simd_half high)
{
    return _mm256_set_m128i(high, low);
}

SIMD_INLINE simd simd_from_half(simd_half x)
{
    return _mm256_castsi128_si256(x);
}

#endif
