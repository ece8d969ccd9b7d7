#include "collectives/barrier/mpi.h"

#include "lib/context.h"

static fsdp_status prepare(fsdp_request *request)
{
    request->rounds = request->ctx->config.verify == FSDP_VERIFY_OFF;
    return FSDP_OK;
}

static fsdp_status post(fsdp_request *request, size_t round)
{
    (void)round;
    return fsdpi_post_barrier(request);
}

const fsdpi_algorithm fsdpi_barrier_mpi = {.name = "mpi", .prepare = prepare, .post = post};
