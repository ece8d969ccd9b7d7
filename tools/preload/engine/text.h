/**
 * @file
 * Words of the drop-in, and numbers from words.
 */
#ifndef FSDPI_PRELOAD_TEXT_H
#define FSDPI_PRELOAD_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/** Prints a line of the drop-in to stderr. */
void fsdpi_preload_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** A number with an optional K, M or G: false if it is none. */
bool fsdpi_preload_bytes(const char *text, uint64_t *bytes);

#endif
