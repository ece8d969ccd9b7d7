/**
 * @file
 * Which process a program is, on which host: as a line of text that another one can hold against what runs where it looks.
 */
#ifndef FSDPI_IDENTITY_H
#define FSDPI_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

enum { FSDPI_IDENTITY_BYTES = 320 }; /* of a line, with its NUL */

/** "host H, process P" of this process, as errors name it; behind it the token of fsdp-run, where there is one. */
void fsdpi_identity_describe(char *text, size_t size);

/** The same, with what tells it from others of that number and that name, and `job`; ends in a newline. */
void fsdpi_identity_line(const char *job, char *line);

/**
 * Whether it is known here that the process which such a line is of has ended: false for one of another host, and for other
 * text.
 */
bool fsdpi_identity_has_ended(const char *line);

#endif
