/**
 * @file
 * One line per event on stderr, or to the function of the settings, below the level that the settings allow.
 */
#ifndef FSDPI_LOG_H
#define FSDPI_LOG_H

#include "fsdp/config.h"

/**
 * Says "libfsdp: LEVEL: [rank R] text" in one write, so that lines of several ranks do not mix.
 * @param[in] ctx  whose level and rank count; NULL: the level of FSDP_LOG, no rank
 */
void fsdpi_log(const fsdp_context *ctx, fsdp_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/**
 * The calling thread is opening or closing a context with these settings, which are resolved: what it logs for no context belongs
 * to that. NULL: no longer.
 * @return what was so before, to be restored
 */
const fsdp_config *fsdpi_log_open(const fsdp_config *config);

#endif
