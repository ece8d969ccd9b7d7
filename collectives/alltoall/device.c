/*
 * Alltoall on the GPUs of one node, symmetric buffers, input and output apart: each rank's copy engines fetch its block
 * from each peer's input.
 * Cost on L ranks for S bytes: (L-1)/L S over the links into each GPU.
 */
#include "collectives/alltoall/alltoall.h"
#include "collectives/reach/peer_gpus.h"
#include "lib/context/context.h"
#include "lib/progress/gpu_request.h"

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdp_context *ctx   = request->ctx;
    const fsdpi_nodes  *nodes = &ctx->nodes;
    const size_t        block = request->call.count * request->call.width;

    fsdpi_gpu_hear_ready(request, request->number);
    for (int i = 0; i < nodes->size; i++) {
        const int position = (nodes->position + i) % nodes->size;
        const int peer     = fsdpi_rank_at(nodes, nodes->mine, position);

        fsdpi_fetch_on_device(request, position, (size_t)ctx->rank * block,
                              (unsigned char *)request->call.out + (size_t)peer * block, block);
    }
    fsdpi_gpu_say_done(request, request->number);
    *progress = FSDPI_FINISHED;
    return FSDP_OK;
}

const fsdpi_algorithm fsdpi_alltoall_device = {
    .name = "device", .advance = advance, .end = fsdpi_leave_on_device, .agrees_at_end = true};
