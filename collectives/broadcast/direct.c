/*
 * Broadcast on one node: each rank copies the root's buffer from where it lies.
 * Cost for S bytes: two synchronisations and 2 S of memory traffic per rank, none at the root.
 */
#include "collectives/broadcast/broadcast.h"
#include "collectives/reach/reach.h"
#include "lib/context/context.h"

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdpi_call *call  = &request->call;
    const size_t      bytes = call->count * call->width, left = bytes - request->at;
    const size_t      now = left < FSDPI_STEP_BYTES ? left : FSDPI_STEP_BYTES;

    *progress = FSDPI_FINISHED;
    if (request->ctx->rank == call->root || (request->flags & FSDPI_FLAG_SHARED) != 0) {
        return FSDP_OK;
    }
    if (now > 0) {
        FSDP_TRY(fsdpi_fetch(request, fsdpi_position_of(&request->ctx->nodes, call->root), FSDPI_INPUT, request->at,
                             (unsigned char *)call->out + request->at, now));
    }
    request->at += now;
    *progress = now < left ? FSDPI_MOVED : FSDPI_FINISHED;
    return FSDP_OK;
}

const fsdpi_algorithm fsdpi_broadcast_direct = {.name = "direct", .advance = advance, .leaves_together = true};
const fsdpi_algorithm fsdpi_broadcast_cma    = {.name = "cma", .advance = advance, .leaves_together = true};
