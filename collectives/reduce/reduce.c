/*
 * A reduce is a reduce-scatter in which the whole vector is the root's slice: see collectives/reduce_scatter/direct.h.
 * Cost for S bytes on N ranks: alpha per step + (N-1) S beta at the root, S beta elsewhere.
 */
#include "collectives/arguments.h"
#include "collectives/reduce_scatter/direct.h"
#include "lib/context.h"

fsdp_status fsdp_ireduce(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype, fsdp_redop op,
                         int root, fsdp_request **request)
{
    const bool       is_root = ctx != NULL && ctx->rank == root;
    const fsdpi_call call    = {.name     = "fsdp_reduce",
                                .in       = in,
                                .out      = out,
                                .count    = count,
                                .dtype    = dtype,
                                .op       = op,
                                .root     = root,
                                .division = FSDPI_DIVISION_ROOT,
                                .has_op   = true,
                                .has_root = true,
                                .has_data = true};

    return fsdpi_issue_checked(ctx, &call, &fsdpi_reduce_scatter_direct, FSDPI_WHOLE,
                               is_root ? FSDPI_WHOLE : FSDPI_NOTHING, FSDP_OK, request);
}

fsdp_status fsdp_reduce(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype, fsdp_redop op,
                        int root)
{
    fsdp_request *request;

    FSDP_TRY(fsdp_ireduce(ctx, in, out, count, dtype, op, root, &request));
    return fsdp_wait(request);
}
