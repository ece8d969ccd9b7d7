/**
 * @file
 * Text of any length.
 */
#ifndef FSDPI_CHECKPOINT_TEXT_H
#define FSDPI_CHECKPOINT_TEXT_H

/** As printf(), into memory of its own, which the caller frees. NULL: there is not enough of it. */
__attribute__((format(printf, 1, 2))) char *fsdpi_text(const char *format, ...);

#endif
