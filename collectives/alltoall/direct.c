#include "collectives/alltoall/direct.h"

#include "lib/context.h"
#include "lib/memory.h"

static size_t block_bytes(const fsdpi_call *call)
{
    return call->count * fsdp_dtype_size(call->dtype);
}

static fsdp_status prepare(fsdp_request *request)
{
    const fsdpi_call *call  = &request->call;
    const size_t      bytes = block_bytes(call) * (size_t)request->ctx->size;

    request->rounds = 1;
    if (call->in != FSDP_IN_PLACE || bytes == 0) {
        return FSDP_OK;
    }
    request->scratch = fsdpi_alloc(request->ctx, FSDP_MEMORY_STAGING, bytes);
    if (request->scratch == NULL) {
        return FSDP_ERR_MEMORY;
    }
    request->scratch_bytes = bytes;
    request->ctx->device->copy(request->scratch, call->out, bytes);
    return FSDP_OK;
}

static fsdp_status post(fsdp_request *request, size_t round)
{
    const fsdpi_call    *call  = &request->call;
    const size_t         bytes = block_bytes(call);
    const int            me    = request->ctx->rank;
    const unsigned char *in    = call->in != FSDP_IN_PLACE ? call->in : request->scratch;
    unsigned char       *out   = call->out;

    (void)round;
    if (bytes == 0) {
        return FSDP_OK;
    }
    for (int peer = 0; peer < request->ctx->size; peer++) {
        if (peer != me) {
            FSDP_TRY(fsdpi_post_receive(request, out + (size_t)peer * bytes, bytes, peer));
        }
    }
    for (int peer = 0; peer < request->ctx->size; peer++) {
        if (peer != me) {
            FSDP_TRY(fsdpi_post_send(request, in + (size_t)peer * bytes, bytes, peer));
        }
    }
    request->ctx->device->copy(out + (size_t)me * bytes, in + (size_t)me * bytes, bytes);
    return FSDP_OK;
}

const fsdpi_algorithm fsdpi_alltoall_direct = {.name = "direct", .prepare = prepare, .post = post};
