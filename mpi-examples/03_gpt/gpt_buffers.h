/**
 * @file
 * Buffers cut from one piece of memory, each on a cache line. With no memory yet the same code counts what is needed.
 */
#ifndef GPT_BUFFERS_H
#define GPT_BUFFERS_H

#include <stddef.h>

#include "gpt_math.h"

/** Every buffer begins on a multiple of this many elements. */
#define GPT_BUFFER_MULTIPLE 64

/** ELEMENTS that a buffer of `count` takes. */
static inline size_t gpt_buffer_elements(size_t count)
{
    return (count + GPT_BUFFER_MULTIPLE - 1) / GPT_BUFFER_MULTIPLE * GPT_BUFFER_MULTIPLE;
}

/** Cuts the next buffer off; NULL where there is no storage. */
static inline real *gpt_buffer_cut(real *storage, size_t *used, size_t count)
{
    real *buffer = storage ? storage + *used : NULL;

    *used += gpt_buffer_elements(count);
    return buffer;
}

#endif
