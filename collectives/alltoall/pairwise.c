/*
 * Alltoall across nodes: every block goes from its rank to its rank in messages of its own. In place the input is first copied.
 * Cost for S bytes on N ranks: (N-1) alpha + (N-1)/N S beta.
 */
#include <string.h>

#include "collectives/alltoall/alltoall.h"
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

static fsdp_status post(fsdp_request *request, const unsigned char *in, unsigned char *out)
{
    fsdp_context *ctx   = request->ctx;
    const size_t  bytes = block_bytes(&request->call);

    for (int k = 1; k < ctx->size && bytes > 0; k++) {
        const int from = (ctx->rank - k + ctx->size) % ctx->size, to = (ctx->rank + k) % ctx->size;

        FSDP_TRY(fsdpi_post_receive(&ctx->messages, out + (size_t)from * bytes, bytes, from, FSDPI_TAG_BLOCKS));
        FSDP_TRY(fsdpi_post_send(&ctx->messages, in + (size_t)to * bytes, bytes, to, FSDPI_TAG_BLOCKS));
    }
    if (bytes > 0) {
        ctx->device->copy(out + (size_t)ctx->rank * bytes, in + (size_t)ctx->rank * bytes, bytes);
    }
    return FSDP_OK;
}

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdpi_call *call = &request->call;
    bool              complete;

    if (request->stage == 0) {
        request->stage = 1;
        FSDP_TRY(post(request, request->scratch != NULL ? request->scratch : call->in, call->out));
    }
    FSDP_TRY(fsdpi_messages_complete(&request->ctx->messages, &complete));
    *progress = complete ? FSDPI_FINISHED : FSDPI_WAITING;
    return FSDP_OK;
}

const fsdpi_algorithm fsdpi_alltoall_pairwise = {.name = "pairwise", .advance = advance};
