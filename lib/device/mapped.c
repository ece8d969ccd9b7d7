#include "lib/device/mapped.h"

#include <errno.h>
#include <sys/mman.h>

enum { PAGE_BITS = 12 };

/* Whether a page is in memory at all, mincore() says of those that are mapped only. */
static bool ask(uintptr_t page)
{
    unsigned char resident;

    return mincore((void *)(page << PAGE_BITS), (size_t)1 << PAGE_BITS, &resident) == 0 || errno != ENOMEM;
}

/* Large buffers begin at round addresses, so the low bits of a page's number tell little. */
static _Atomic uintptr_t *place_of(fsdpi_pages *known, uintptr_t page)
{
    return &known->page[(page * 0x9e3779b97f4a7c15u >> 32) % FSDPI_PAGES_KNOWN];
}

static bool is_known(fsdpi_pages *known, uintptr_t page)
{
    return atomic_load_explicit(place_of(known, page), memory_order_relaxed) == page;
}

static void remember(fsdpi_pages *known, uintptr_t page)
{
    atomic_store_explicit(place_of(known, page), page, memory_order_relaxed);
}

bool fsdpi_is_mapped(fsdpi_pages *known, const void *memory, size_t bytes)
{
    const uintptr_t first = (uintptr_t)memory >> PAGE_BITS, last = ((uintptr_t)memory + bytes - 1) >> PAGE_BITS;

    if (last < first || first == 0) {
        return false;
    }
    if (is_known(known, first) && is_known(known, last)) {
        return true;
    }
    if (!ask(first) || !ask(last)) {
        return false;
    }
    remember(known, first);
    remember(known, last);
    return true;
}
