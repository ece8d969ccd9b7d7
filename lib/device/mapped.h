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
    _Atomic uintptr_t page[FSDPI_PAGES_KNOWN]; /* each in a place that its number decides, 0: none */
} fsdpi_pages;

/** Whether the first and the last of these BYTES are mapped. */
bool fsdpi_is_mapped(fsdpi_pages *known, const void *memory, size_t bytes);

#endif
