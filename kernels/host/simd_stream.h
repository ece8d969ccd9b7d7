/**
 * @file
 * The copy that goes past the caches, so that the lines it writes are not read from memory first. Included once per
 * instruction set.
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_STREAM_H
#define FSDPI_KERNELS_HOST_SIMD_STREAM_H

#include <immintrin.h>

#include "kernels/host/simd.h"

static void stream(void *out, const void *in, size_t bytes)
{
    const size_t skew = (SIMD_BYTES - (uintptr_t)out % SIMD_BYTES) % SIMD_BYTES;
    size_t       i    = skew < bytes ? skew : bytes;

    if (bytes == 0) {
        return;
    }
    memcpy(out, in, i);
    for (; bytes - i >= SIMD_BYTES; i += SIMD_BYTES) { /* one by one: reading and writing mix best so */
        simd_store_past_caches((char *)out + i, simd_load_any((const char *)in + i));
    }
    memcpy((char *)out + i, (const char *)in + i, bytes - i);
    _mm_sfence(); /* such stores are not ordered with the flag that says they are done */
}

#endif
