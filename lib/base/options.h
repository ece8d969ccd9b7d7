/**
 * @file
 * Options structs of the interface, which programs of older and newer versions pass with sizes of their own.
 *
 * Each begins with `size_t size`, set by its FSDP_..._DEFAULT or its _init function. Fields are only ever appended, never into
 * padding, and 0 (in fsdp_config also FSDP_UNSET) means the default of a field that an older library does not know.
 */
#ifndef FSDPI_OPTIONS_H
#define FSDPI_OPTIONS_H

#include <stddef.h>

#include "fsdp/status.h"

/**
 * Puts what a program has given over the library's own defaults.
 *
 * @param[in]     type   the struct's name, "fsdp_model_options", after which its _init function is named
 * @param[in]     given  a struct of that type, of any version; NULL: the defaults stand
 * @param[in,out] own    holds the defaults; unchanged after an error; its size stays `bytes`
 * @param[in]     bytes  the struct's size in this library
 * @return FSDP_OK; for an agreement to print (see fsdpi_fail_together()), FSDP_ERR_ARG: a size that no version has had;
 *         FSDP_ERR_UNSUPPORTED: a field that this version lacks is set.
 */
fsdp_status fsdpi_options_take(fsdp_context *ctx, const char *type, const void *given, void *own, size_t bytes);

/** The other direction, for _init functions: the defaults into `size` BYTES of a program's struct, zeros behind them. */
void fsdpi_options_give(const void *defaults, size_t bytes, void *options, size_t size);

#endif
