/**
 * @file
 * The ending of a noun behind a number.
 */
#ifndef FSDPI_PLURAL_H
#define FSDPI_PLURAL_H

#include <stdint.h>

/** "1 rank", "2 ranks": "" or "s". */
static inline const char *fsdpi_s(uint64_t count)
{
    return count == 1 ? "" : "s";
}

#endif
