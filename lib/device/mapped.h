/**
 * @file
 * Whether memory is there at all: a wrong pointer is then an error with a name, not a signal.
 *
 * The system is asked once for a page and remembered for as long as no other page takes its place here; memory that the
 * program has given back in between goes unnoticed.
 */
#ifndef FSDPI_MAPPED_H
#define FSDPI_MAPPED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FSDPI_PAGES_KNOWN = 256 };

typedef struct fsdpi_pages {
    unsigned          bits;                    /* of an address, that say where in its page it is */
    _Atomic uintptr_t page[FSDPI_PAGES_KNOWN]; /* each in a place that its number decides, 0: none */
} fsdpi_pages;

/** No page is known. `page_bytes`, a power of two, is the size of the system's. */
void fsdpi_pages_open(fsdpi_pages *known, size_t page_bytes);

/** No page is known any more: before addresses are used for something else. Others may ask meanwhile. */
void fsdpi_pages_forget(fsdpi_pages *known);

/** Whether the first and the last of these BYTES are mapped. */
bool fsdpi_is_mapped(fsdpi_pages *known, const void *memory, size_t bytes);

/** The same memory of another question about pages: whether it is known of the first and the last of BYTES, from 1. */
bool fsdpi_pages_are_known(const fsdpi_pages *known, const void *memory, size_t bytes);
void fsdpi_pages_remember(fsdpi_pages *known, const void *memory, size_t bytes);

#endif
