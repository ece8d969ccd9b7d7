#include "collectives/reduce_scatter/reduce_scatter.h"
#include "collectives/arguments/arguments.h"
#include "collectives/blocks/staged.h"
#include "collectives/collectives.h"
#include "collectives/select/select_algorithm.h"

static const fsdpi_selection REDUCE_SCATTER = {
    .base      = FSDPI_COLLECTIVE("reduce_scatter", FSDPI_REDUCE_SCATTER, FSDPI_SCATTER),
    .menu      = {[FSDP_ALGO_STAGED] = &fsdpi_staged,
                  [FSDP_ALGO_DIRECT] = &fsdpi_reduce_scatter_direct,
                  [FSDP_ALGO_CMA]    = &fsdpi_reduce_scatter_cma,
                  [FSDP_ALGO_RAILS]  = &fsdpi_reduce_scatter_rails},
    .on_device = {[FSDP_ALGO_STAGED] = &fsdpi_staged_device,
                  [FSDP_ALGO_DIRECT] = &fsdpi_reduce_scatter_device,
                  [FSDP_ALGO_RAILS]  = &fsdpi_reduce_scatter_rails_device},
};

/* In place, the output buffer holds the whole vector. */
static fsdpi_extent output_extent(const void *full)
{
    return full == FSDP_IN_PLACE ? FSDPI_WHOLE : FSDPI_PART;
}

static fsdpi_call call_of(const char *name, const void *full, void *shard, size_t count, fsdp_dtype dtype,
                          fsdp_redop op)
{
    return (fsdpi_call){.collective = &REDUCE_SCATTER.base.collective,
                        .name       = name,
                        .in         = full,
                        .out        = shard,
                        .count      = count,
                        .dtype      = dtype,
                        .op         = op,
                        .division   = FSDPI_DIVISION_EQUAL,
                        .has_op     = true,
                        .has_data   = true};
}

static fsdpi_call call_of_v(const void *full, void *shard, const size_t *counts, fsdp_dtype dtype, fsdp_redop op)
{
    fsdpi_call call = call_of("fsdp_reduce_scatterv", full, shard, 0, dtype, op);

    call.counts   = counts;
    call.division = FSDPI_DIVISION_COUNTS;
    call.is_step  = true; /* so that it differs from a reduce_scatter */
    return call;
}

static fsdpi_call step_of(const fsdpi_purpose *purpose, const void *full, void *shard, size_t count, fsdp_dtype dtype,
                          fsdp_redop op)
{
    fsdpi_call call = call_of(purpose->name, full, shard, count, dtype, op);

    call.label       = purpose->label;
    call.is_step     = true;
    call.is_reserved = purpose->reserved;
    return call;
}

fsdp_status fsdpi_ireduce_scatter(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *full, void *shard,
                                  size_t count, fsdp_dtype dtype, fsdp_redop op, fsdp_request **request)
{
    fsdpi_call call = step_of(purpose, full, shard, count, dtype, op);

    return fsdpi_issue_checked(ctx, &call, FSDPI_WHOLE, output_extent(full), purpose->status, request);
}

fsdp_status fsdpi_reduce_scatter(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *full, void *shard,
                                 size_t count, fsdp_dtype dtype, fsdp_redop op)
{
    fsdpi_call call = step_of(purpose, full, shard, count, dtype, op);

    return fsdpi_run_checked(ctx, &call, FSDPI_WHOLE, output_extent(full), purpose->status);
}

static fsdpi_call step_of_v(const fsdpi_purpose *purpose, const void *full, void *shard, fsdpi_begins *begins,
                            const void *divided, fsdp_dtype dtype, fsdp_redop op)
{
    fsdpi_call call = step_of(purpose, full, shard, 0, dtype, op);

    call.begins   = begins;
    call.divided  = divided;
    call.division = FSDPI_DIVISION_COUNTS;
    return call;
}

fsdp_status fsdpi_ireduce_scatterv(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *full, void *shard,
                                   fsdpi_begins *begins, const void *divided, fsdp_dtype dtype, fsdp_redop op,
                                   fsdp_request **request)
{
    fsdpi_call call = step_of_v(purpose, full, shard, begins, divided, dtype, op);

    return fsdpi_issue_checked(ctx, &call, FSDPI_WHOLE, output_extent(full), purpose->status, request);
}

fsdp_status fsdp_ireduce_scatter(fsdp_context *ctx, const void *full, void *shard, size_t count, fsdp_dtype dtype,
                                 fsdp_redop op, fsdp_request **request)
{
    fsdpi_call call = call_of("fsdp_reduce_scatter", full, shard, count, dtype, op);

    return fsdpi_issue_checked(ctx, &call, FSDPI_WHOLE, output_extent(full), FSDP_OK, request);
}

fsdp_status fsdp_reduce_scatter(fsdp_context *ctx, const void *full, void *shard, size_t count, fsdp_dtype dtype,
                                fsdp_redop op)
{
    const fsdpi_plain_call plain = {&REDUCE_SCATTER.base.collective, full, shard, count, dtype, op};
    fsdp_status            status;

    if (fsdpi_run_again(ctx, &plain, &status)) {
        return status;
    }
    fsdpi_call call = call_of("fsdp_reduce_scatter", full, shard, count, dtype, op);

    return fsdpi_run_checked(ctx, &call, FSDPI_WHOLE, output_extent(full), FSDP_OK);
}

fsdp_status fsdp_ireduce_scatterv(fsdp_context *ctx, const void *full, void *shard, const size_t *counts,
                                  fsdp_dtype dtype, fsdp_redop op, fsdp_request **request)
{
    fsdpi_call call = call_of_v(full, shard, counts, dtype, op);

    return fsdpi_issue_checked(ctx, &call, FSDPI_WHOLE, output_extent(full), FSDP_OK, request);
}

fsdp_status fsdp_reduce_scatterv(fsdp_context *ctx, const void *full, void *shard, const size_t *counts,
                                 fsdp_dtype dtype, fsdp_redop op)
{
    fsdpi_call call = call_of_v(full, shard, counts, dtype, op);

    return fsdpi_run_checked(ctx, &call, FSDPI_WHOLE, output_extent(full), FSDP_OK);
}
