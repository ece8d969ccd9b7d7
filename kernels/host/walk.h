/**
 * @file
 * How copies and reductions walk memory where the data is in no cache of this core: how many pages at once, and whether they ask for
 * what comes next.
 *
 * Intel's prefetchers stop at the end of a page and have to learn the next one anew: copies and reductions that walk four pages at
 * once, a few lines of each in turn, move a quarter more there. AMD's follow one page after the other, and four at once halve what
 * goes past the caches (an EPYC with AVX-512: 31 GB/s copied and 17). Others walk one page, too: nothing else has been measured.
 *
 * AMD's processors gain where reductions ask for the lines that they read 2 KiB later: two inputs of which one was in no cache took 8.4
 * us for 128 KiB instead of 9.7 (a Zen 5). Intel's only lose by it, but for types of 16 bits.
 */
#ifndef FSDPI_KERNELS_HOST_WALK_H
#define FSDPI_KERNELS_HOST_WALK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/** Pages at once, at least 1; what fsdpi_kernels_find() has found for this processor, unless a test has set it since. */
extern atomic_size_t fsdpi_pages_walked;

/** Likewise, whether to ask for lines that are read later. */
extern atomic_bool fsdpi_asks_ahead;

static inline size_t fsdpi_pages_at_once(void)
{
    return atomic_load_explicit(&fsdpi_pages_walked, memory_order_relaxed);
}

#endif
