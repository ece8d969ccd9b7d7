/** @file Whether all ranks hold the same settings and the same table of algorithms; if not, which of them differ. */
#ifndef FSDPI_SAME_SETTINGS_H
#define FSDPI_SAME_SETTINGS_H

#include "fsdp/context.h"

/**
 * Collective, by MPI alone.
 * @param[in] status  of this rank's own settings and table, with the detail recorded in the context
 * @return FSDP_OK; the worst `status` of all ranks, or FSDP_ERR_MISMATCH: the same on all ranks, recorded
 */
fsdp_status fsdpi_same_settings(fsdp_context *ctx, fsdp_status status);

#endif
