#include "collectives/allgather/direct.h"

#include "collectives/arguments.h"
#include "lib/context.h"

fsdp_status fsdpi_allgather_direct_exchange(fsdp_request *request)
{
    const size_t      width = fsdp_dtype_size(request->call.dtype);
    unsigned char    *full  = request->call.out;
    const int         me    = request->ctx->rank;
    const fsdpi_slice mine  = fsdpi_slice_of(request, me);

    for (int peer = 0; peer < request->ctx->size; peer++) {
        const fsdpi_slice theirs = fsdpi_slice_of(request, peer);
        if (peer != me) {
            FSDP_TRY(fsdpi_post_receive(request, full + theirs.begin * width, theirs.count * width, peer));
        }
    }
    for (int peer = 0; peer < request->ctx->size; peer++) {
        if (peer != me) {
            FSDP_TRY(fsdpi_post_send(request, full + mine.begin * width, mine.count * width, peer));
        }
    }
    return FSDP_OK;
}

static fsdp_status prepare(fsdp_request *request)
{
    request->rounds = 1;
    return FSDP_OK;
}

static fsdp_status post(fsdp_request *request, size_t round)
{
    const fsdpi_call *call  = &request->call;
    const size_t      width = fsdp_dtype_size(call->dtype);
    const fsdpi_slice mine  = fsdpi_slice_of(request, request->ctx->rank);

    (void)round;
    if (call->in != FSDP_IN_PLACE) {
        request->ctx->device->copy((unsigned char *)call->out + mine.begin * width, call->in, mine.count * width);
    }
    return fsdpi_allgather_direct_exchange(request);
}

const fsdpi_algorithm fsdpi_allgather_direct = {.name = "direct", .prepare = prepare, .post = post};
