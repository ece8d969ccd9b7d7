#include "collectives/broadcast/mpi.h"

#include "lib/error.h"

static fsdp_status prepare(fsdp_request *request)
{
    request->rounds = 1;
    return FSDP_OK;
}

static fsdp_status post(fsdp_request *request, size_t round)
{
    const fsdpi_call *call = &request->call;

    (void)round;
    return fsdpi_post_broadcast(request, call->out, call->count * fsdp_dtype_size(call->dtype), call->root);
}

const fsdpi_algorithm fsdpi_broadcast_mpi = {.name = "mpi", .prepare = prepare, .post = post};
