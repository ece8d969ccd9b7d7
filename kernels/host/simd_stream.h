/**
 * @file
 * Copies of what is not in a cache of this core: through the caches, or past them, so that the lines they write are not
 * read from memory first. Included once per instruction set.
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_STREAM_H
#define FSDPI_KERNELS_HOST_SIMD_STREAM_H

#include "kernels/host/simd.h"
#include "kernels/host/walk.h"

enum { STREAM_VISIT_BYTES = 128 };

/** `out` is aligned to SIMD_BYTES where it is to go past the caches; `bytes` is a multiple of SIMD_PAST_BYTES. */
SIMD_INLINE void copy_vectors(char *out, const char *in, size_t bytes, bool past_caches)
{
    const size_t step = past_caches ? SIMD_PAST_BYTES : SIMD_BYTES;

    for (size_t i = 0; i < bytes; i += step) { /* one by one: reading and writing mix best so */
        if (past_caches) {
            simd_copy_past_caches(out + i, in + i);
        } else {
            const simd x = simd_load_any(in + i);
            memcpy(out + i, &x, sizeof x);
        }
    }
}

/** Copies a multiple of SIMD_PAST_BYTES, less than that short of `bytes`; how much. */
SIMD_INLINE size_t copy_pages(char *out, const char *in, size_t bytes, size_t pages, bool past_caches)
{
    const size_t at_once = pages * SIMD_PAGE_BYTES;
    size_t       done    = 0;

    for (; bytes - done >= at_once; done += at_once) {
        for (size_t i = 0; i < SIMD_PAGE_BYTES; i += STREAM_VISIT_BYTES) {
            for (size_t page = 0; page < pages; page++) {
                const size_t at = done + page * SIMD_PAGE_BYTES + i;
                copy_vectors(out + at, in + at, STREAM_VISIT_BYTES, past_caches);
            }
        }
    }
    const size_t rest = (bytes - done) / SIMD_PAST_BYTES * SIMD_PAST_BYTES;
    copy_vectors(out + done, in + done, rest, past_caches);
    return done + rest;
}

static void copy(void *out, const void *in, size_t bytes)
{
    const size_t pages = fsdpi_pages_at_once();
    size_t       done  = 0;

    if (pages > 1 && bytes >= pages * SIMD_PAGE_BYTES) {
        done = copy_pages(out, in, bytes, pages, false);
    }
    if (done < bytes) { /* where there is nothing, pointers may be NULL */
        memcpy((char *)out + done, (const char *)in + done, bytes - done);
    }
}

static void stream(void *out, const void *in, size_t bytes)
{
    const size_t skew = (SIMD_BYTES - (uintptr_t)out % SIMD_BYTES) % SIMD_BYTES;
    size_t       done = skew < bytes ? skew : bytes;

    if (bytes == 0) {
        return;
    }
    memcpy(out, in, done);
    done += copy_pages((char *)out + done, (const char *)in + done, bytes - done, fsdpi_pages_at_once(), true);
    memcpy((char *)out + done, (const char *)in + done, bytes - done);
    simd_end_past_caches();
}

#endif
