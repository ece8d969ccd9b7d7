/**
 * @file
 * How much staging memory operations cannot do without. Pure arithmetic.
 */
#ifndef FSDPI_STAGING_H
#define FSDPI_STAGING_H

#include <stddef.h>

#include "lib/node/nodes.h"

/**
 * BYTES of FSDP_STAGING_BYTES with which every operation has room in the half of it that is behind the slots: for a record of
 * each node with some payload; and, besides, for an element of each peer on a node that cannot be addressed. The same on all
 * ranks.
 */
size_t fsdpi_staging_least(const fsdpi_nodes *nodes);

#endif
