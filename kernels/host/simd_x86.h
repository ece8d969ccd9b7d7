/**
 * @file
 * Past the caches on x86, for vectors of any width: included by simd_avx2.h and simd_avx512.h behind their
 * simd_store_past_caches().
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_X86_H
#define FSDPI_KERNELS_HOST_SIMD_X86_H

#include <immintrin.h>
#include <string.h>

/* BYTES that simd_copy_past_caches() takes at once, and the fewest that a reduction sends past the caches before it turns
 * to another page. */
#define SIMD_PAST_BYTES  SIMD_BYTES
#define SIMD_VISIT_BYTES SIMD_BYTES

SIMD_INLINE void simd_store_two_past_caches(void *to, simd first, simd second)
{
    simd_store_past_caches(to, first);
    simd_store_past_caches((char *)to + SIMD_BYTES, second);
}

SIMD_INLINE void simd_copy_past_caches(void *to, const void *from)
{
    simd x;

    memcpy(&x, from, sizeof x);
    simd_store_past_caches(to, x);
}

/** Afterwards a release makes visible what went past the caches. */
SIMD_INLINE void simd_end_past_caches(void)
{
    _mm_sfence();
}

#endif
