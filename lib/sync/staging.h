/**
 * @file
 * How much staging memory operations cannot do without. Pure arithmetic.
 */
#ifndef FSDPI_STAGING_H
#define FSDPI_STAGING_H

#include <stddef.h>

#include "lib/node/nodes.h"

/** BYTES of staging memory of the short lane, where FSDP_STAGING_BYTES are those of the long one; and of both. */
size_t fsdpi_staging_short(size_t staging_bytes);
size_t fsdpi_staging_total(size_t staging_bytes);

/**
 * BYTES of FSDP_STAGING_BYTES with which every operation has room in the half that is behind the slots: in both lanes for a record of each
 * node with some payload; and in the long one, besides, for an element of each peer on a node that cannot be addressed. The same
 * on all ranks.
 */
size_t fsdpi_staging_least(const fsdpi_nodes *nodes);

#endif
