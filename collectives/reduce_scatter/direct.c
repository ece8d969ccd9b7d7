/*
 * Reduce-scatter on one node: each rank reads its own part of all L inputs where they lie, with one kernel of L operands
 * in rank order, and writes the result once.
 *
 * Cost on L ranks for S bytes: two synchronisations and S + S/L of memory traffic per rank, the lower bound. With
 * process_vm_readv the peers' parts come through a piece of staging memory that stays in the cache.
 * A reduce is the same with the whole vector as the root's part: (L + 1) S at the root.
 */
#include "collectives/reach/pieces.h"
#include "collectives/reduce_scatter/reduce_scatter.h"
#include "lib/context/context.h"

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    bool done;

    FSDP_TRY(fsdpi_reduce_own_part(request, &done));
    *progress = done ? FSDPI_FINISHED : FSDPI_MOVED;
    return FSDP_OK;
}

const fsdpi_algorithm fsdpi_reduce_scatter_direct = {
    .name = "direct", .advance = advance, .end = fsdpi_settle, .leaves_together = true};
const fsdpi_algorithm fsdpi_reduce_scatter_cma = {
    .name = "cma", .advance = advance, .end = fsdpi_settle, .leaves_together = true};
