/**
 * @file
 * One line per event on stderr, below the level that the settings allow.
 */
#ifndef FSDPI_LOG_H
#define FSDPI_LOG_H

#include "fsdp/config.h"

/**
 * Prints "libfsdp: LEVEL: [rank R] text" in one write, so that lines of several ranks do not mix.
 * @param[in] ctx  whose level and rank count; NULL: the level of FSDP_LOG, no rank
 */
void fsdpi_log(const fsdp_context *ctx, fsdp_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
