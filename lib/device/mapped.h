/**
 * @file
 * Whether memory is there at all: a wrong pointer is then an error with a name, not a signal.
 *
 * To ask the system takes longer than a short operation between near cores, and a program that works through its memory comes to
 * other pages each time. So it is asked about regions of 2 MiB, and about a page only where its region is not all mapped. The
 * answer is remembered for as long as no other one takes its place here; memory that the program has given back in between
 * goes unnoticed.
 */
#ifndef FSDPI_MAPPED_H
#define FSDPI_MAPPED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FSDPI_PAGES_KNOWN = 256, FSDPI_REGION_BITS = 21 };

typedef struct fsdpi_pages {
    unsigned          bits;                    /* of an address, that say where in its page it is */
    _Atomic uintptr_t page[FSDPI_PAGES_KNOWN]; /* each in a place that its number decides, 0: none */
} fsdpi_pages;

/** Large buffers begin at round addresses, so the low bits of a page's number tell little. */
static inline size_t fsdpi_place_of_page(uintptr_t page)
{
    return (page * 0x9e3779b97f4a7c15u >> 32) % FSDPI_PAGES_KNOWN;
}

static inline bool fsdpi_page_is_known(const fsdpi_pages *known, uintptr_t page)
{
    return page != 0 && atomic_load_explicit(&known->page[fsdpi_place_of_page(page)], memory_order_relaxed) == page;
}

/** No page is known. `page_bytes`, a power of two, is the size of the system's. */
void fsdpi_pages_open(fsdpi_pages *known, size_t page_bytes);

/** No page is known any more: before addresses are used for something else. Others may ask meanwhile. */
void fsdpi_pages_forget(fsdpi_pages *known);

/** Whether these pages are known, those of the first and the last of BYTES, from 1; and makes them known. */
bool fsdpi_pages_are_known(const fsdpi_pages *known, const void *memory, size_t bytes);
void fsdpi_pages_remember(fsdpi_pages *known, const void *memory, size_t bytes);

/** What is known to be mapped. */
typedef struct fsdpi_mapped {
    fsdpi_pages pages, regions;
} fsdpi_mapped;

/** As fsdpi_pages_open() and fsdpi_pages_forget(); the system's pages have 4096 BYTES at least. */
void fsdpi_mapped_open(fsdpi_mapped *known, size_t page_bytes);
void fsdpi_mapped_forget(fsdpi_mapped *known);

/** Whether these two bytes are mapped: fsdpi_is_mapped() where they are not in one region or page that is known. */
bool fsdpi_are_mapped(fsdpi_mapped *known, uintptr_t first, uintptr_t last);

/** Whether the first and the last of these BYTES, from 1, are in one region or page that is known to be mapped. */
static inline bool fsdpi_is_known(const fsdpi_mapped *known, const void *memory, size_t bytes)
{
    const uintptr_t first = (uintptr_t)memory, last = first + bytes - 1;
    const uintptr_t region = first >> FSDPI_REGION_BITS, page = first >> known->pages.bits;

    return (region == last >> FSDPI_REGION_BITS && fsdpi_page_is_known(&known->regions, region)) ||
           (page == last >> known->pages.bits && fsdpi_page_is_known(&known->pages, page));
}

/** Whether they are mapped. The first page never is. Every operation asks. */
static inline bool fsdpi_is_mapped(fsdpi_mapped *known, const void *memory, size_t bytes)
{
    const uintptr_t first = (uintptr_t)memory;

    return fsdpi_is_known(known, memory, bytes) || fsdpi_are_mapped(known, first, first + bytes - 1);
}

#endif
