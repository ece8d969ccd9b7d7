/**
 * @file
 * Taking a block: each rank copies or reduces what it needs, from the slots of this node's ranks or the records of the nodes.
 */
#ifndef FSDPI_TAKE_H
#define FSDPI_TAKE_H

#include "collectives/blocks/publish.h"

/** Where the data of another node came to where that is in the output; else NULL: see fsdpi_collective::place. */
void *fsdpi_place_in_result(const fsdp_request *request, fsdpi_pattern pattern, int node);

/** Takes what this rank needs of a block that all ranks have published, and the leaders have exchanged. */
void fsdpi_take(const fsdpi_published *from, fsdpi_pattern pattern, const fsdpi_block *b);

#endif
