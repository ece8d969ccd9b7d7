/*
 * Alltoall across nodes: every block goes from its rank to its rank in chunks of its own, some blocks at a time, see
 * collectives/rails/rails.h. In place the input is first copied.
 * Cost for S bytes on N ranks: (N-1) alpha + (N-1)/N S beta.
 */
#include <string.h>

#include "collectives/alltoall/alltoall.h"
#include "collectives/rails/rails.h"
#include "lib/context/context.h"
#include "lib/device/memory.h"

static size_t block_bytes(const fsdpi_call *call)
{
    return call->count * call->width;
}

static size_t whole_bytes(const fsdp_request *request)
{
    return block_bytes(&request->call) * (size_t)request->ctx->size;
}

fsdp_status fsdpi_alltoall_prepare(fsdp_request *request)
{
    const fsdpi_call *call  = &request->call;
    const size_t      bytes = whole_bytes(request);

    if (call->in != call->out || bytes == 0 || request->ctx->nodes.count == 1) {
        return FSDP_OK;
    }
    request->scratch = fsdpi_alloc(request->ctx, FSDP_MEMORY_STAGING, bytes);
    if (request->scratch == NULL) {
        return FSDP_ERR_MEMORY;
    }
    request->scratch_bytes = bytes;
    if (!call->on_device) {
        memcpy(request->scratch, call->out, bytes);
    }
    return FSDP_OK;
}

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    return fsdpi_rails_advance(request, FSDPI_EXCHANGES, progress);
}

const fsdpi_algorithm fsdpi_alltoall_pairwise = {
    .name = "pairwise", .advance = advance, .awaited = fsdpi_rails_awaited};
