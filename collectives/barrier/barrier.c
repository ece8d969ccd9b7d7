#include "collectives/arguments.h"
#include "collectives/barrier/mpi.h"
#include "lib/error.h"

fsdp_status fsdp_ibarrier(fsdp_context *ctx, fsdp_request **request)
{
    const fsdpi_call call = {.name = "fsdp_barrier"};

    return fsdpi_issue_checked(ctx, &call, &fsdpi_barrier_mpi, FSDPI_NOTHING, FSDPI_NOTHING, FSDP_OK, request);
}

fsdp_status fsdp_barrier(fsdp_context *ctx)
{
    fsdp_request *request;

    FSDP_TRY(fsdp_ibarrier(ctx, &request));
    return fsdp_wait(request);
}
