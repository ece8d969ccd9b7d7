#include "lib/device/mapped.h"

#include <errno.h>
#include <sys/mman.h>

/* Whether a page is in memory at all, mincore() says of those that are mapped only. One byte stands for its page. */
static bool ask(const fsdpi_pages *known, uintptr_t page)
{
    unsigned char resident;

    return mincore((void *)(page << known->bits), 1, &resident) == 0 || errno != ENOMEM;
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

void fsdpi_pages_open(fsdpi_pages *known, size_t page_bytes)
{
    known->bits = (unsigned)__builtin_ctzll(page_bytes);
    fsdpi_pages_forget(known);
}

void fsdpi_pages_forget(fsdpi_pages *known)
{
    for (size_t i = 0; i < FSDPI_PAGES_KNOWN; i++) {
        atomic_store_explicit(&known->page[i], 0, memory_order_relaxed);
    }
}

bool fsdpi_is_mapped(fsdpi_pages *known, const void *memory, size_t bytes)
{
    const uintptr_t first = (uintptr_t)memory >> known->bits, last = ((uintptr_t)memory + bytes - 1) >> known->bits;

    if (last < first || first == 0) {
        return false;
    }
    if (is_known(known, first) && is_known(known, last)) {
        return true;
    }
    if (!ask(known, first) || !ask(known, last)) {
        return false;
    }
    remember(known, first);
    remember(known, last);
    return true;
}
