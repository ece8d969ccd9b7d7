/**
 * @file
 * Which chunks a rank sends to other nodes and receives from them, and in which order. A function of the nodes, the rank and
 * the sizes alone, which needs no table: it names one chunk after the other, and both sides of a message name theirs in the
 * same order, so that one tag is enough for all.
 *
 * A rank deals, for its node, with the parts of those ranks of other nodes that have its position, modulo the number of ranks
 * on its node. Chunks with the same number are sent to all nodes, or come from all, before the next ones; around a ring, and
 * where blocks are exchanged, it is all chunks of a part.
 *
 * Partial results: where there is room for a chunk from every node, each rank begins with the node behind its own, so that no
 * two send to the same one. Where there is not, all send to owners in the order of the nodes, and owners receive in that order:
 * each reduces what comes at once. No rank then waits for one that waits for it, since a chunk waits only for those that come
 * before it in (number, sum of both nodes). In a series of C chunks that takes (C + 1) / C of the time.
 */
#ifndef FSDPI_RAILS_SCHEDULE_H
#define FSDPI_RAILS_SCHEDULE_H

#include <stdbool.h>

#include "collectives/arguments/slices.h"
#include "lib/node/nodes.h"
#include "lib/sync/rails.h"

/** Whose schedule it is: where a rank is. */
typedef struct fsdpi_seat {
    int rank, node, position;
} fsdpi_seat;

/** The seat at a position of this rank's node. */
fsdpi_seat fsdpi_rails_seat(const fsdpi_nodes *nodes, int position);

/** Begins anew. */
static inline void fsdpi_rails_rewind(fsdpi_cursor *cursor)
{
    *cursor = (fsdpi_cursor){.open = false};
}

/**
 * Names the next chunk of a stream. False: there are no more.
 * @param[in] request  its sizes are those of fsdpi_rails_size_chunks()
 */
bool fsdpi_rails_next(const fsdp_request *request, const fsdpi_seat *seat, fsdpi_stream_kind kind, fsdpi_cursor *cursor,
                      fsdpi_parcel *parcel);

/** The part of a rank, at once whatever its number. */
fsdpi_slice fsdpi_rails_part(const fsdp_request *request, int rank);

#endif
