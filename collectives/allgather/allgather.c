#include "collectives/allgather/direct.h"
#include "collectives/arguments.h"
#include "collectives/collectives.h"
#include "lib/error.h"

fsdp_status fsdpi_iallgather(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *shard, void *full,
                             size_t count, fsdp_dtype dtype, fsdp_request **request)
{
    const fsdpi_call call = {.name     = purpose->name,
                             .label    = purpose->label,
                             .in       = shard,
                             .out      = full,
                             .count    = count,
                             .dtype    = dtype,
                             .division = FSDPI_DIVISION_EQUAL,
                             .has_data = true};

    return fsdpi_issue_checked(ctx, &call, &fsdpi_allgather_direct, FSDPI_PART, FSDPI_WHOLE, purpose->status, request);
}

fsdp_status fsdp_iallgather(fsdp_context *ctx, const void *shard, void *full, size_t count, fsdp_dtype dtype,
                            fsdp_request **request)
{
    const fsdpi_purpose purpose = {.name = "fsdp_allgather"};

    return fsdpi_iallgather(ctx, &purpose, shard, full, count, dtype, request);
}

fsdp_status fsdp_allgather(fsdp_context *ctx, const void *shard, void *full, size_t count, fsdp_dtype dtype)
{
    fsdp_request *request;

    FSDP_TRY(fsdp_iallgather(ctx, shard, full, count, dtype, &request));
    return fsdp_wait(request);
}

fsdp_status fsdp_iallgatherv(fsdp_context *ctx, const void *shard, void *full, const size_t *counts, fsdp_dtype dtype,
                             fsdp_request **request)
{
    const fsdpi_call call = {.name     = "fsdp_allgatherv",
                             .in       = shard,
                             .out      = full,
                             .counts   = counts,
                             .dtype    = dtype,
                             .division = FSDPI_DIVISION_COUNTS,
                             .has_data = true};

    return fsdpi_issue_checked(ctx, &call, &fsdpi_allgather_direct, FSDPI_PART, FSDPI_WHOLE, FSDP_OK, request);
}

fsdp_status fsdp_allgatherv(fsdp_context *ctx, const void *shard, void *full, const size_t *counts, fsdp_dtype dtype)
{
    fsdp_request *request;

    FSDP_TRY(fsdp_iallgatherv(ctx, shard, full, counts, dtype, &request));
    return fsdp_wait(request);
}
