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
 * @return FSDP_OK; FSDP_ERR_ARG with the detail recorded for the calling thread; every setting that could not be used
 *         then holds its default, so that the context can still carry the error to the other ranks
 */
fsdp_status fsdpi_settings_resolve(const fsdp_config *given, fsdp_config *resolved);

/** Warns about each FSDP_* variable that is no setting, with the nearest name that is. */
void fsdpi_settings_warn_unknown(const fsdp_context *ctx);

/** A hash of all settings that ranks must agree on. */
uint64_t fsdpi_settings_fingerprint(const fsdp_config *config);

/** Writes those of them that are not the defaults as "FSDP_VERIFY=off FSDP_TIMEOUT_S=30", cut after `size` BYTES. */
void fsdpi_settings_describe(const fsdp_config *config, char *text, size_t size);

#endif
