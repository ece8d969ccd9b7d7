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
static size_t place_of(uintptr_t page)
{
    return (page * 0x9e3779b97f4a7c15u >> 32) % FSDPI_PAGES_KNOWN;
}

static bool is_known(const fsdpi_pages *known, uintptr_t page)
{
    return atomic_load_explicit(&known->page[place_of(page)], memory_order_relaxed) == page;
}

static void remember(fsdpi_pages *known, uintptr_t page)
{
    atomic_store_explicit(&known->page[place_of(page)], page, memory_order_relaxed);
}

static uintptr_t first_page(const fsdpi_pages *known, const void *memory)
{
    return (uintptr_t)memory >> known->bits;
}

static uintptr_t last_page(const fsdpi_pages *known, const void *memory, size_t bytes)
{
    return ((uintptr_t)memory + bytes - 1) >> known->bits;
}

bool fsdpi_pages_are_known(const fsdpi_pages *known, const void *memory, size_t bytes)
{
    return is_known(known, first_page(known, memory)) && is_known(known, last_page(known, memory, bytes));
}

void fsdpi_pages_remember(fsdpi_pages *known, const void *memory, size_t bytes)
{
    remember(known, first_page(known, memory));
    remember(known, last_page(known, memory, bytes));
}

void fsdpi_pages_forget(fsdpi_pages *known)
{
    for (size_t i = 0; i < FSDPI_PAGES_KNOWN; i++) {
        atomic_store_explicit(&known->page[i], 0, memory_order_relaxed);
    }
}

void fsdpi_pages_open(fsdpi_pages *known, size_t page_bytes)
{
    known->bits = (unsigned)__builtin_ctzll(page_bytes);
    fsdpi_pages_forget(known);
}

bool fsdpi_is_mapped(fsdpi_pages *known, const void *memory, size_t bytes)
{
    const uintptr_t first = first_page(known, memory), last = last_page(known, memory, bytes);

    if (last < first || first == 0) {
        return false;
    }
    if (fsdpi_pages_are_known(known, memory, bytes)) {
        return true;
    }
    if (!ask(known, first) || !ask(known, last)) {
        return false;
    }
    fsdpi_pages_remember(known, memory, bytes);
    return true;
}
