/**
 * @file
 * From struct, environment and defaults to the settings in force.
 */
#ifndef FSDPI_SETTINGS_H
#define FSDPI_SETTINGS_H

#include "fsdp/config.h"

/**
 * Resolves every setting into `resolved`.
 * @param[in] given  what the caller of fsdp_init() passed, or NULL
 * @return FSDP_OK; FSDP_ERR_ARG with the detail recorded for the calling thread, and not printed: an agreement or
 *         fsdpi_error_print() does that; every setting that could not be used
 *         then holds its default, so that the context can still carry the error to the other ranks
 */
fsdp_status fsdpi_settings_resolve(const fsdp_config *given, fsdp_config *resolved);

/** Warns about each FSDP_* variable that is no setting, with the nearest name that is. */
void fsdpi_settings_warn_unknown(const fsdp_context *ctx);

#endif
