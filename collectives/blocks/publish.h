/**
 * @file
 * Publishing a block: each rank copies its data into a slot of shared memory, where its peers find it. Across nodes, the leader
 * then makes from all of these the record that the other nodes need: its node's partial reduction, or its data.
 */
#ifndef FSDPI_PUBLISH_H
#define FSDPI_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/blocks/ops.h"
#include "collectives/blocks/windows.h"
#include "lib/context/context.h"

/** A block that has been published. */
typedef struct fsdpi_published {
    fsdp_request *request;
    uint64_t      number; /* of the letters that carry it */
    bool          in_letter;
    bool          in_pairs; /* and what the nodes have exchanged: lib/sync/pairs.h */
} fsdpi_published;

/** Where the data of a peer lies. */
static inline const unsigned char *fsdpi_published_by(const fsdpi_published *from, int position)
{
    fsdp_request *request = from->request;

    return from->in_letter ? fsdpi_letter_of(&request->lane->box, position, from->number)->payload
                           : fsdpi_blocks_ops_of(request)->slot(request, position, from->number);
}

/** Whether this rank has something to publish. */
bool fsdpi_publishes(const fsdp_request *request, fsdpi_pattern pattern);

/** Copies this rank's data of a block to its slot. */
void fsdpi_publish(fsdp_request *request, fsdpi_pattern pattern, const fsdpi_block *b, unsigned char *slot);

/** On the leader: writes what the other nodes need of a block. Returns how many BYTES. */
size_t fsdpi_fill_record(const fsdpi_published *from, fsdpi_pattern pattern, const fsdpi_block *b,
                         unsigned char *payload);

/** What of a packed block the ranks of a node need: from the first of their parts to the last, in ELEMENTS. */
fsdpi_slice fsdpi_needed_by(const fsdp_request *request, const fsdpi_block *b, int node);

/** BYTES of the parts of one node's ranks in a block. */
size_t fsdpi_gathered_bytes(const fsdp_request *request, const fsdpi_block *b, int node);

#endif
