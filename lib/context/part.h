/**
 * @file
 * A context of some of the ranks of another one, as groups of a model and the axes of a mesh have. It counts as a part of that
 * one: errors name ranks as there, and what it holds from its beginning is in the memory of both.
 */
#ifndef FSDPI_PART_H
#define FSDPI_PART_H

#include "lib/context/context.h"

/**
 * Opens parts: ranks with one color are a part, in the order of their keys. Collective over `ctx`, but only those of a part know
 * how it went.
 *
 * @param[in]  whole   all ranks are one part in their own order, and then MPI_Comm_split(), which may spin, is not needed
 * @param[in]  config  resolved settings, those of `ctx` or nearly so
 * @param[out] part    NULL on failure; released with fsdpi_part_close()
 */
fsdp_status fsdpi_part_open(fsdp_context *ctx, bool whole, int color, int key, const fsdp_config *config,
                            fsdp_context **part);

/** Collective over the part. Does nothing with NULL, or with `ctx` itself. */
void fsdpi_part_close(fsdp_context *ctx, fsdp_context *part);

#endif
