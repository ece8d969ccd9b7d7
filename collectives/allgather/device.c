/*
 * Allgather on the GPUs of one node, symmetric buffers: each rank's copy engines fetch its peers' parts from where they lie,
 * its own first, the next position's then, so that no two ranks begin at the same peer.
 * Cost on L ranks for S bytes: (L-1)/L S over the links into each GPU; the host waits for its peers' calls only.
 */
#include "collectives/allgather/allgather.h"
#include "collectives/arguments/slices.h"
#include "collectives/reach/peer_gpus.h"
#include "lib/context/context.h"
#include "lib/progress/gpu_request.h"

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;
    const size_t       width = request->call.width;
    unsigned char     *out   = request->call.out;

    fsdpi_gpu_hear_ready(request, request->number);
    for (int i = 0; i < nodes->size; i++) {
        const int         position = (nodes->position + i) % nodes->size;
        const fsdpi_slice part     = fsdpi_slice_of(request, fsdpi_rank_at(nodes, nodes->mine, position));

        fsdpi_fetch_on_device(request, position, 0, part.count > 0 ? out + part.begin * width : NULL,
                              part.count * width);
    }
    fsdpi_gpu_say_done(request, request->number);
    *progress = FSDPI_FINISHED;
    return FSDP_OK;
}

const fsdpi_algorithm fsdpi_allgather_device = {
    .name = "device", .advance = advance, .end = fsdpi_leave_on_device, .agrees_at_end = true};
