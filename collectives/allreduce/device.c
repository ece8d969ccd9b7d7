/*
 * Allreduce on the GPUs of one node, symmetric buffers: each rank reduces its own part of all L inputs, in rank order, and
 * writes it into all L results, with one kernel. In place nothing races, since only rank r touches part r of any buffer.
 * Cost on L ranks for S bytes: 2 (L-1)/L S over the links of each GPU.
 */
#include "collectives/allreduce/allreduce.h"
#include "collectives/arguments/slices.h"
#include "collectives/reach/peer_gpus.h"
#include "collectives/reach/reach.h"
#include "lib/context/context.h"
#include "lib/progress/gpu_request.h"

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdp_context *ctx  = request->ctx;
    const fsdpi_slice   mine = fsdpi_slice_of(request, ctx->rank);
    const size_t        n = (size_t)ctx->nodes.size, begin = mine.begin * request->call.width;
    void              **to = (void **)(void *)(ctx->operands + n);

    fsdpi_gpu_hear_ready(request, request->number);
    if (mine.count > 0) {
        for (int p = 0; p < ctx->nodes.size; p++) {
            ctx->operands[p] = fsdpi_peer(request, p, FSDPI_INPUT) + begin;
            to[p]            = fsdpi_peer(request, p, FSDPI_OUTPUT) + begin;
        }
        fsdpi_gpu_reduce_to(request, to, n, ctx->operands, n, mine.count, request->call.op, (size_t)ctx->size);
    }
    fsdpi_gpu_say_done(request, request->number);
    *progress = FSDPI_FINISHED;
    return FSDP_OK;
}

const fsdpi_algorithm fsdpi_allreduce_device = {
    .name = "device", .advance = advance, .end = fsdpi_leave_on_device, .agrees_at_end = true};
