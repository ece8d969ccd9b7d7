/*
 * Broadcast on the GPUs of one node, symmetric buffers: each rank's copy engines fetch the root's buffer.
 * Cost for S bytes: S over the links into each GPU but the root's, (L-1) S out of that one.
 */
#include "collectives/broadcast/broadcast.h"
#include "collectives/reach/peer_gpus.h"
#include "lib/context/context.h"
#include "lib/progress/gpu_request.h"

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdpi_call *call = &request->call;

    fsdpi_gpu_hear_ready(request, request->number);
    fsdpi_fetch_on_device(request, fsdpi_position_of(&request->ctx->nodes, call->root), 0, call->out, call->out_bytes);
    fsdpi_gpu_say_done(request, request->number);
    *progress = FSDPI_FINISHED;
    return FSDP_OK;
}

const fsdpi_algorithm fsdpi_broadcast_device = {
    .name = "device", .advance = advance, .end = fsdpi_leave_on_device, .agrees_at_end = true};
