/*
 * A reduce is a reduce-scatter in which the whole vector is the root's part: see collectives/reduce_scatter/. Across nodes every rank
 * reduces a part of it: see collectives/reduce/rails.c.
 */
#include "collectives/reduce/reduce.h"
#include "collectives/arguments/arguments.h"
#include "collectives/blocks/staged.h"
#include "collectives/reduce_scatter/reduce_scatter.h"
#include "collectives/select/select_algorithm.h"
#include "lib/context/context.h"

static const fsdpi_selection REDUCE = {
    .base      = FSDPI_COLLECTIVE_WITH("reduce", FSDPI_REDUCE, FSDPI_TO_ROOT, fsdpi_reduce_prepare),
    .menu      = {[FSDP_ALGO_STAGED] = &fsdpi_staged,
                  [FSDP_ALGO_DIRECT] = &fsdpi_reduce_scatter_direct,
                  [FSDP_ALGO_CMA]    = &fsdpi_reduce_scatter_cma,
                  [FSDP_ALGO_RAILS]  = &fsdpi_reduce_rails},
    .on_device = {[FSDP_ALGO_STAGED] = &fsdpi_staged_device,
                  [FSDP_ALGO_DIRECT] = &fsdpi_reduce_scatter_device,
                  [FSDP_ALGO_RAILS]  = &fsdpi_reduce_scatter_rails_device},
};

static fsdpi_call call_of(const void *in, void *out, size_t count, fsdp_dtype dtype, fsdp_redop op, int root)
{
    return (fsdpi_call){.collective = &REDUCE.base.collective,
                        .name       = "fsdp_reduce",
                        .in         = in,
                        .out        = out,
                        .count      = count,
                        .dtype      = dtype,
                        .op         = op,
                        .root       = root,
                        .division   = FSDPI_DIVISION_ROOT,
                        .has_op     = true,
                        .has_root   = true,
                        .has_data   = true};
}

static fsdpi_extent output_extent(const fsdp_context *ctx, int root)
{
    return ctx != NULL && ctx->rank == root ? FSDPI_WHOLE : FSDPI_NOTHING;
}

fsdp_status fsdp_ireduce(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype, fsdp_redop op,
                         int root, fsdp_request **request)
{
    fsdpi_call call = call_of(in, out, count, dtype, op, root);

    return fsdpi_issue_checked(ctx, &call, FSDPI_WHOLE, output_extent(ctx, root), FSDP_OK, request);
}

fsdp_status fsdp_reduce(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype, fsdp_redop op,
                        int root)
{
    fsdpi_call call = call_of(in, out, count, dtype, op, root);

    return fsdpi_run_checked(ctx, &call, FSDPI_WHOLE, output_extent(ctx, root), FSDP_OK);
}
