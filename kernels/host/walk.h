/**
 * @file
 * How many pages copies and reductions walk at once, where the data is in no cache of this core.
 *
 * Intel's prefetchers stop at the end of a page and have to learn the next one anew: copies and reductions that walk four pages at
 * once, a few lines of each in turn, move a quarter more there. AMD's follow one page after the other, and four at once halve what
 * goes past the caches (an EPYC with AVX-512: 31 GB/s copied and 17). Others walk one page, too: nothing else has been measured.
 */
#ifndef FSDPI_KERNELS_HOST_WALK_H
#define FSDPI_KERNELS_HOST_WALK_H

#include <stdatomic.h>
#include <stddef.h>

/** Pages at once, at least 1; what fsdpi_kernels_find() has found for this processor, unless a test has set it since. */
extern atomic_size_t fsdpi_pages_walked;

static inline size_t fsdpi_pages_at_once(void)
{
    return atomic_load_explicit(&fsdpi_pages_walked, memory_order_relaxed);
}

#endif
