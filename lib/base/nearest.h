/**
 * @file
 * How far apart two names are, for the one that was probably meant.
 */
#ifndef FSDPI_NEAREST_H
#define FSDPI_NEAREST_H

#include <stddef.h>

/** Edit distance (Levenshtein, 1966) of two names; SIZE_MAX where the second is longer than 255 bytes. */
size_t fsdpi_name_distance(const char *a, const char *b);

#endif
