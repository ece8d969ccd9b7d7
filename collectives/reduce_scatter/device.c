/*
 * Reduce-scatter on the GPUs of one node, symmetric buffers: each rank reduces its own part of all L inputs where they lie,
 * in rank order, with one kernel.
 * Cost on L ranks for S bytes: (L-1)/L S over the links into each GPU; a reduce takes (L-1) S into the root's.
 */
#include "collectives/arguments/slices.h"
#include "collectives/reach/peer_gpus.h"
#include "collectives/reach/pieces.h"
#include "collectives/reach/reach.h"
#include "collectives/reduce_scatter/reduce_scatter.h"
#include "lib/context/context.h"
#include "lib/progress/gpu_request.h"

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdp_context *ctx  = request->ctx;
    const fsdpi_slice   mine = fsdpi_slice_of(request, ctx->rank);
    void *const         to   = fsdpi_own_result(request);

    fsdpi_gpu_hear_ready(request, request->number);
    if (mine.count > 0) {
        for (int p = 0; p < ctx->nodes.size; p++) {
            ctx->operands[p] = fsdpi_peer(request, p, FSDPI_INPUT) + mine.begin * request->call.width;
        }
        fsdpi_gpu_reduce_to(request, &to, 1, ctx->operands, (size_t)ctx->nodes.size, mine.count, request->call.op,
                            (size_t)ctx->size);
    }
    fsdpi_gpu_say_done(request, request->number);
    *progress = FSDPI_FINISHED;
    return FSDP_OK;
}

static void end(fsdp_request *request)
{
    fsdpi_leave_on_device(request);
    fsdpi_settle(request);
}

const fsdpi_algorithm fsdpi_reduce_scatter_device = {
    .name = "device", .advance = advance, .end = end, .agrees_at_end = true};
