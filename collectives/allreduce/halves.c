/*
 * Allreduce between few nodes, whose agreements are exchanged in pairs: what is too long to be sent whole to everybody, and too
 * short for the rails to be worth an agreement before them. The reduction is scattered with the agreement, each node getting its
 * part of the vector only; then one block, in the same lane, gathers what the nodes have reduced.
 *
 * Cost on M nodes for S bytes: one message to each node at once, then ceil(log2 M) in a row; 2 (M-1)/M S over each link, where inline
 * sends (M-1) S.
 */
#include "collectives/allreduce/allreduce.h"
#include "collectives/blocks/inline.h"
#include "collectives/blocks/staged.h"

enum { SCATTERED, GATHERING };

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    if (request->stage == GATHERING) {
        return fsdpi_blocks_advance(request, FSDPI_GATHER, progress);
    }
    fsdpi_take_inline(request, FSDPI_SCATTER);
    fsdpi_begin_gathering(request);
    *progress = FSDPI_MOVED;
    return FSDP_OK;
}

const fsdpi_algorithm fsdpi_allreduce_halves = {.name = "halves", .advance = advance, .is_short = true};
