/*
 * Reduce across nodes: each rank reduces a part of the vector, as in a reduce-scatter, and sends it to the root chunk by chunk, as
 * each is final; see collectives/rails/rails.h. Two ranks send each other nothing but what the root needs, which is as much.
 * Cost for S bytes on M nodes: 2 (M-1)/M S into the root's node, (M-1)/M S into and out of each other one, and S/N of memory on
 * each rank but the root.
 */
#include "collectives/reduce/reduce.h"

#include "collectives/arguments/slices.h"
#include "collectives/rails/rails.h"
#include "lib/context/context.h"
#include "lib/device/memory.h"

static bool is_split(const fsdp_request *request)
{
    return request->ctx->size > 2;
}

fsdp_status fsdpi_reduce_prepare(fsdp_request *request)
{
    const fsdp_context *ctx   = request->ctx;
    const fsdpi_call   *call  = &request->call;
    const size_t        bytes = fsdpi_even_slice(call->count, ctx->size, ctx->rank).count * call->width;

    if (ctx->nodes.count == 1 || !is_split(request) || call->on_device || ctx->rank == call->root || bytes == 0) {
        return FSDP_OK;
    }
    request->scratch = fsdpi_alloc(request->ctx, FSDP_MEMORY_STAGING, bytes);
    if (request->scratch == NULL) {
        return FSDP_ERR_MEMORY;
    }
    request->scratch_bytes = bytes;
    return FSDP_OK;
}

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    return fsdpi_rails_advance(request, FSDPI_REDUCES | (is_split(request) ? FSDPI_COLLECTS : 0), progress);
}

const fsdpi_algorithm fsdpi_reduce_rails = {
    .name = "rails", .advance = advance, .awaited = fsdpi_rails_awaited, .leaves_together = true};
