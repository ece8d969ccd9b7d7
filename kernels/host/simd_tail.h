/**
 * @file
 * Tails for instruction sets whose loads and stores take no mask.
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_TAIL_H
#define FSDPI_KERNELS_HOST_SIMD_TAIL_H

#include <stddef.h>
#include <string.h>

/** memcpy() for the few bytes of a tail: moves of a fixed size, no call. */
static inline __attribute__((always_inline)) void simd_copy_tail(void *out, const void *in, size_t bytes)
{
    char       *to   = out;
    const char *from = in;

    for (; bytes >= 16; bytes -= 16, to += 16, from += 16) {
        memcpy(to, from, 16);
    }
    if (bytes >= 8) {
        memcpy(to, from, 8);
        bytes -= 8, to += 8, from += 8;
    }
    if (bytes >= 4) {
        memcpy(to, from, 4);
        bytes -= 4, to += 4, from += 4;
    }
    for (; bytes > 0; bytes--) {
        *to++ = *from++;
    }
}

#endif
