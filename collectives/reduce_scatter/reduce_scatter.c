#include "collectives/arguments.h"
#include "collectives/collectives.h"
#include "collectives/reduce_scatter/direct.h"
#include "lib/error.h"

/* In place, the output buffer holds the whole vector. */
static fsdpi_extent output_extent(const void *full)
{
    return full == FSDP_IN_PLACE ? FSDPI_WHOLE : FSDPI_PART;
}

fsdp_status fsdpi_ireduce_scatter(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *full, void *shard,
                                  size_t count, fsdp_dtype dtype, fsdp_redop op, fsdp_request **request)
{
    const fsdpi_call call = {.name     = purpose->name,
                             .label    = purpose->label,
                             .in       = full,
                             .out      = shard,
                             .count    = count,
                             .dtype    = dtype,
                             .op       = op,
                             .division = FSDPI_DIVISION_EQUAL,
                             .has_op   = true,
                             .has_data = true};

    return fsdpi_issue_checked(ctx, &call, &fsdpi_reduce_scatter_direct, FSDPI_WHOLE, output_extent(full),
                               purpose->status, request);
}

fsdp_status fsdp_ireduce_scatter(fsdp_context *ctx, const void *full, void *shard, size_t count, fsdp_dtype dtype,
                                 fsdp_redop op, fsdp_request **request)
{
    const fsdpi_purpose purpose = {.name = "fsdp_reduce_scatter"};

    return fsdpi_ireduce_scatter(ctx, &purpose, full, shard, count, dtype, op, request);
}

fsdp_status fsdp_reduce_scatter(fsdp_context *ctx, const void *full, void *shard, size_t count, fsdp_dtype dtype,
                                fsdp_redop op)
{
    fsdp_request *request;

    FSDP_TRY(fsdp_ireduce_scatter(ctx, full, shard, count, dtype, op, &request));
    return fsdp_wait(request);
}

fsdp_status fsdp_ireduce_scatterv(fsdp_context *ctx, const void *full, void *shard, const size_t *counts,
                                  fsdp_dtype dtype, fsdp_redop op, fsdp_request **request)
{
    const fsdpi_call call = {.name     = "fsdp_reduce_scatterv",
                             .in       = full,
                             .out      = shard,
                             .counts   = counts,
                             .dtype    = dtype,
                             .op       = op,
                             .division = FSDPI_DIVISION_COUNTS,
                             .has_op   = true,
                             .has_data = true};

    return fsdpi_issue_checked(ctx, &call, &fsdpi_reduce_scatter_direct, FSDPI_WHOLE, output_extent(full), FSDP_OK,
                               request);
}

fsdp_status fsdp_reduce_scatterv(fsdp_context *ctx, const void *full, void *shard, const size_t *counts,
                                 fsdp_dtype dtype, fsdp_redop op)
{
    fsdp_request *request;

    FSDP_TRY(fsdp_ireduce_scatterv(ctx, full, shard, counts, dtype, op, &request));
    return fsdp_wait(request);
}
