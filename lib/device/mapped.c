#include "lib/device/mapped.h"

#include <errno.h>
#include <sys/mman.h>

enum { LEAST_PAGE = 4096 };

/* Whether pages are in memory at all, mincore() says of those that are mapped only. One byte stands for each. */
static bool ask(uintptr_t begin, size_t bytes)
{
    unsigned char resident[((size_t)1 << FSDPI_REGION_BITS) / LEAST_PAGE];

    return mincore((void *)begin, bytes, resident) == 0 || errno != ENOMEM;
}

static void remember(fsdpi_pages *known, uintptr_t page)
{
    atomic_store_explicit(&known->page[fsdpi_place_of_page(page)], page, memory_order_relaxed);
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
    return fsdpi_page_is_known(known, first_page(known, memory)) &&
           fsdpi_page_is_known(known, last_page(known, memory, bytes));
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

void fsdpi_mapped_open(fsdpi_mapped *known, size_t page_bytes)
{
    fsdpi_pages_open(&known->pages, page_bytes);
    fsdpi_pages_open(&known->regions, (size_t)1 << FSDPI_REGION_BITS);
}

void fsdpi_mapped_forget(fsdpi_mapped *known)
{
    fsdpi_pages_forget(&known->pages);
    fsdpi_pages_forget(&known->regions);
}

static bool is_mapped_whole(fsdpi_pages *known, uintptr_t address)
{
    const uintptr_t page = address >> known->bits;

    if (page == 0 || !ask(page << known->bits, (size_t)1 << known->bits)) {
        return false;
    }
    remember(known, page);
    return true;
}

static bool is_mapped(fsdpi_mapped *known, uintptr_t address)
{
    return fsdpi_page_is_known(&known->regions, address >> known->regions.bits) ||
           fsdpi_page_is_known(&known->pages, address >> known->pages.bits) ||
           is_mapped_whole(&known->regions, address) || is_mapped_whole(&known->pages, address);
}

bool fsdpi_are_mapped(fsdpi_mapped *known, uintptr_t first, uintptr_t last)
{
    return last >= first && is_mapped(known, first) && is_mapped(known, last);
}
