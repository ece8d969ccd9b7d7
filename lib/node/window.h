/**
 * @file
 * Ranges of addresses that stay the same while the memory that is seen there comes and goes: parts of a segment are mapped into
 * them, for reading only. A range costs no memory; while nothing is mapped into it, each access to it is a fault.
 */
#ifndef FSDPI_WINDOW_H
#define FSDPI_WINDOW_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/core.h"
#include "lib/node/segment.h"

typedef struct fsdpi_window {
    unsigned char *base; /* NULL: none */
    size_t         bytes;
} fsdpi_window;

/** BYTES rounded up to whole pages: what begins or ends in a segment for a window must lie at such multiples. */
size_t fsdpi_window_bytes(size_t bytes);

/**
 * Reserves addresses. Local.
 * @param[in] bytes  of the window, fsdpi_window_bytes() of them; 0: none
 * @return false where the system has none left or a limit is too low, which errno says
 */
bool fsdpi_window_reserve(size_t bytes, fsdpi_window *window);

/** Gives them back, whatever is mapped there. Local. */
void fsdpi_window_release(fsdpi_window *window);

/**
 * Shows part of a segment that was opened as `mappable`, for reading. Local.
 * @param[in] memory  where it lies in the segment: at a page
 * @param[in] at      where it shall be seen, in a window
 * @param[in] bytes   whole pages
 * @return false where the system refuses, which errno says; nothing is seen there then
 */
bool fsdpi_window_open(const fsdpi_segment *segment, const unsigned char *memory, unsigned char *at, size_t bytes);

/** Hides it again. Local. False where the system refuses: it is still seen then. */
bool fsdpi_window_shut(unsigned char *at, size_t bytes);

#endif
