/**
 * @file
 * How copies and reductions walk memory where the data is in no cache of this core: how many pages at once, and whether they ask for
 * what comes next.
 *
 * Intel's prefetchers stop at the end of a page and have to learn the next one anew: copies and reductions that walk four pages at
 * once, a few lines of each in turn, move a quarter more there. AMD's follow one page after the other, and four at once halve what
 * goes past the caches (an EPYC with AVX-512: 31 GB/s copied and 17). Others walk one page, too: nothing else has been measured.
 *
 * AMD's gain where a reduction of two inputs asks for the lines that it reaches 2 KiB later, if one of the arrays is in no cache:
 * 128 KiB took 8 us, and 9.3 without (a Zen 5). Reductions of eight lose by it: 45 us instead of 31.
 *
 * A store that misses the caches reads its line first. On Intel's that costs more than a result in a cache is worth, if nothing was
 * there before: 16 KiB to 4 MiB went 1.3 to 2.0 times as fast past the caches (an Ice Lake; collectives of two ranks, each time other
 * memory), and half as fast where caches held them. AMD's were slower past them, in an allgather of 64 MiB by a fifth (a Zen 5).
 */
#ifndef FSDPI_KERNELS_HOST_WALK_H
#define FSDPI_KERNELS_HOST_WALK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/** Pages at once, at least 1; what fsdpi_kernels_find() has found for this processor, unless a test has set it since. */
extern atomic_size_t fsdpi_pages_walked;

/** Likewise, whether to ask for lines that are reached later. */
extern atomic_bool fsdpi_lines_asked;

/** Likewise, what fsdpi_kernels_favour_past() says. */
extern atomic_bool fsdpi_past_favoured;

static inline size_t fsdpi_pages_at_once(void)
{
    return atomic_load_explicit(&fsdpi_pages_walked, memory_order_relaxed);
}

static inline bool fsdpi_asks_ahead(void)
{
    return atomic_load_explicit(&fsdpi_lines_asked, memory_order_relaxed);
}

#endif
