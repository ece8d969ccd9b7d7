#include "collectives/arguments.h"
#include "collectives/broadcast/mpi.h"
#include "lib/error.h"

fsdp_status fsdp_ibroadcast(fsdp_context *ctx, void *buffer, size_t count, fsdp_dtype dtype, int root,
                            fsdp_request **request)
{
    const fsdpi_call call = {.name     = "fsdp_broadcast",
                             .in       = FSDP_IN_PLACE,
                             .out      = buffer,
                             .count    = count,
                             .dtype    = dtype,
                             .root     = root,
                             .division = FSDPI_DIVISION_ROOT,
                             .has_root = true,
                             .has_data = true};

    return fsdpi_issue_checked(ctx, &call, &fsdpi_broadcast_mpi, FSDPI_WHOLE, FSDPI_WHOLE, FSDP_OK, request);
}

fsdp_status fsdp_broadcast(fsdp_context *ctx, void *buffer, size_t count, fsdp_dtype dtype, int root)
{
    fsdp_request *request;

    FSDP_TRY(fsdp_ibroadcast(ctx, buffer, count, dtype, root, &request));
    return fsdp_wait(request);
}
