/**
 * @file
 * Text of any length, and names in order.
 */
#ifndef FSDPI_CHECKPOINT_TEXT_H
#define FSDPI_CHECKPOINT_TEXT_H

#include <stddef.h>

/** As printf(), into memory of its own, which the caller frees. NULL: there is not enough of it. */
__attribute__((format(printf, 1, 2))) char *fsdpi_text(const char *format, ...);

/** The place of a name among `n` that are in order, of which name_at() tells each; `n`: it is not one of them. */
size_t fsdpi_name_find(size_t n, const char *(*name_at)(const void *of, size_t place), const void *of,
                       const char *name);

#endif
