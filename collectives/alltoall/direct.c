/*
 * Alltoall on one node, input and output apart: each rank copies its block from each peer's input where that lies.
 * Cost for S bytes: two synchronisations and 2 S of memory traffic per rank.
 */
#include "collectives/alltoall/alltoall.h"
#include "collectives/reach/reach.h"
#include "lib/context/context.h"

/* `stage` counts peers, `at` the BYTES that have come of the present one's block. */
static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdp_context *ctx   = request->ctx;
    const fsdpi_nodes  *nodes = &ctx->nodes;
    const size_t        block = request->call.count * request->call.width;
    size_t              moved = 0;

    while (request->stage < nodes->size && moved < FSDPI_STEP_BYTES) {
        const int    position = (nodes->position + request->stage) % nodes->size;
        const int    peer     = fsdpi_rank_at(nodes, nodes->mine, position);
        const size_t left     = block - request->at;
        const size_t now      = left < FSDPI_STEP_BYTES ? left : FSDPI_STEP_BYTES;

        if (now > 0) {
            FSDP_TRY(fsdpi_fetch(request, position, FSDPI_INPUT, (size_t)ctx->rank * block + request->at,
                                 (unsigned char *)request->call.out + (size_t)peer * block + request->at, now));
        }
        moved += now;
        request->at = now < left ? request->at + now : 0;
        request->stage += now == left;
    }
    *progress = request->stage < nodes->size ? FSDPI_MOVED : FSDPI_FINISHED;
    return FSDP_OK;
}

const fsdpi_algorithm fsdpi_alltoall_direct = {.name = "direct", .advance = advance, .leaves_together = true};
const fsdpi_algorithm fsdpi_alltoall_cma    = {.name = "cma", .advance = advance, .leaves_together = true};
