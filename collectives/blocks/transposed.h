/**
 * @file
 * The blocks of an alltoall between nodes that exchange in pairs: what one node sends another is, for each of its ranks in their
 * order, a block for each rank there. Where every rank is a node, that is one block of the input, as it lies there.
 */
#ifndef FSDPI_TRANSPOSED_H
#define FSDPI_TRANSPOSED_H

#include "collectives/blocks/publish.h"

/** BYTES that this node sends another one, and gets from it. */
size_t fsdpi_transposed_bytes(const fsdp_request *request, int node);

/** What this node has for another one, on the leader behind fsdpi_fill_transposed(). */
const unsigned char *fsdpi_transposed_for(const fsdp_request *request, int node);

/** On the leader: writes what the other nodes need, one behind the other. Returns how many BYTES. */
size_t fsdpi_fill_transposed(const fsdpi_published *from, unsigned char *payload);

/** Where the block lies that a rank of another node has for this rank, in what that node has sent. */
const unsigned char *fsdpi_transposed_from(const fsdp_request *request, fsdpi_seated peer);

#endif
