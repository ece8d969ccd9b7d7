#include "collectives/allreduce/one_shot.h"
#include "collectives/allreduce/two_shot.h"
#include "collectives/arguments.h"
#include "collectives/collectives.h"
#include "lib/context.h"

/* Up to here a second step costs more than the (N-2) S bytes that it saves. */
enum { ONE_SHOT_BYTES = 4096 };

static const fsdpi_algorithm *choose(const fsdp_context *ctx, size_t count, fsdp_dtype dtype)
{
    const size_t width = fsdp_dtype_size(dtype);

    return width > 0 && count <= ONE_SHOT_BYTES / width && fsdpi_allreduce_one_shot_fits(ctx, count, dtype)
               ? &fsdpi_allreduce_one_shot
               : &fsdpi_allreduce_two_shot;
}

fsdp_status fsdpi_iallreduce(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *in, void *out, size_t count,
                             fsdp_dtype dtype, fsdp_redop op, fsdp_request **request)
{
    const fsdpi_call call = {.name     = purpose->name,
                             .label    = purpose->label,
                             .in       = in,
                             .out      = out,
                             .count    = count,
                             .dtype    = dtype,
                             .op       = op,
                             .division = FSDPI_DIVISION_SPLIT,
                             .has_op   = true,
                             .has_data = true};

    return fsdpi_issue_checked(ctx, &call, ctx != NULL ? choose(ctx, count, dtype) : NULL, FSDPI_WHOLE, FSDPI_WHOLE,
                               purpose->status, request);
}

fsdp_status fsdp_iallreduce(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype, fsdp_redop op,
                            fsdp_request **request)
{
    const fsdpi_purpose purpose = {.name = "fsdp_allreduce"};

    return fsdpi_iallreduce(ctx, &purpose, in, out, count, dtype, op, request);
}

fsdp_status fsdp_allreduce(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype, fsdp_redop op)
{
    fsdp_request *request;

    FSDP_TRY(fsdp_iallreduce(ctx, in, out, count, dtype, op, &request));
    return fsdp_wait(request);
}
