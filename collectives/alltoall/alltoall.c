#include "collectives/alltoall/direct.h"
#include "collectives/arguments.h"
#include "lib/error.h"

fsdp_status fsdp_ialltoall(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype,
                           fsdp_request **request)
{
    const fsdpi_call call = {.name     = "fsdp_alltoall",
                             .in       = in,
                             .out      = out,
                             .count    = count,
                             .dtype    = dtype,
                             .division = FSDPI_DIVISION_EQUAL,
                             .has_data = true};

    return fsdpi_issue_checked(ctx, &call, &fsdpi_alltoall_direct, FSDPI_WHOLE, FSDPI_WHOLE, FSDP_OK, request);
}

fsdp_status fsdp_alltoall(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype)
{
    fsdp_request *request;

    FSDP_TRY(fsdp_ialltoall(ctx, in, out, count, dtype, &request));
    return fsdp_wait(request);
}
