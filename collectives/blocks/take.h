/**
 * @file
 * Taking a block: each rank copies or reduces what it needs, from the slots of this node's ranks or the records of the nodes.
 */
#ifndef FSDPI_TAKE_H
#define FSDPI_TAKE_H

#include <stdbool.h>

#include "collectives/blocks/publish.h"
#include "lib/sync/exchange.h"

/** Where the data of another node can come to straight away, in the output; else NULL: see fsdpi_collective::place. */
void *fsdpi_place_in_result(const fsdp_request *request, fsdpi_pattern pattern, int node);

/** Behind the agreement: whether data of so many BYTES has come to there, if there is such a place. */
static inline bool fsdpi_came_to_result(const fsdp_request *request, size_t bytes)
{
    const fsdpi_exchange *exchange = &request->lane->exchange;

    return bytes > exchange->together || exchange->swap != FSDPI_NO_SWAP;
}

/** Takes what this rank needs of a block that all ranks have published, and the leaders have exchanged. */
void fsdpi_take(const fsdpi_published *from, fsdpi_pattern pattern, const fsdpi_block *b);

#endif
