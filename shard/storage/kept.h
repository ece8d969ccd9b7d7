/**
 * @file
 * What the ranks of a node keep of gathered views, each a part: from the begin of a pass until the masters change.
 */
#ifndef FSDPI_KEPT_H
#define FSDPI_KEPT_H

#include "collectives/collectives.h"
#include "shard/state/model.h"

/** Copies this rank's part of a view that is gathered. */
void fsdpi_keep_part(fsdpi_flat *flat, const fsdpi_view *view);

/** Makes a view of the parts: an operation of the queue, which moves nothing between nodes. Sets view->gathering. */
fsdp_status fsdpi_gather_kept(fsdpi_flat *flat, const fsdpi_purpose *purpose, fsdpi_view *view);

#endif
