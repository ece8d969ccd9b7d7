#include "collectives/allgather/allgather.h"
#include "collectives/arguments/arguments.h"
#include "collectives/blocks/staged.h"
#include "collectives/collectives.h"
#include "collectives/select/select_algorithm.h"

static const fsdpi_selection ALLGATHER = {
    .base      = FSDPI_COLLECTIVE("allgather", FSDPI_ALLGATHER, FSDPI_GATHER),
    .menu      = {[FSDP_ALGO_STAGED] = &fsdpi_staged,
                  [FSDP_ALGO_DIRECT] = &fsdpi_allgather_direct,
                  [FSDP_ALGO_CMA]    = &fsdpi_allgather_cma,
                  [FSDP_ALGO_RAILS]  = &fsdpi_allgather_rails,
                  [FSDP_ALGO_RING]   = &fsdpi_allgather_ring},
    .on_device = {[FSDP_ALGO_STAGED] = &fsdpi_staged_device,
                  [FSDP_ALGO_DIRECT] = &fsdpi_allgather_device,
                  [FSDP_ALGO_RAILS]  = &fsdpi_allgather_rails_device,
                  [FSDP_ALGO_RING]   = &fsdpi_allgather_ring_device},
};

static fsdpi_call call_of(const char *name, const void *shard, void *full, size_t count, fsdp_dtype dtype)
{
    return (fsdpi_call){.collective = &ALLGATHER.base.collective,
                        .name       = name,
                        .in         = shard,
                        .out        = full,
                        .count      = count,
                        .dtype      = dtype,
                        .division   = FSDPI_DIVISION_EQUAL,
                        .has_data   = true};
}

static fsdpi_call call_of_v(const void *shard, void *full, const size_t *counts, fsdp_dtype dtype)
{
    fsdpi_call call = call_of("fsdp_allgatherv", shard, full, 0, dtype);

    call.counts   = counts;
    call.division = FSDPI_DIVISION_COUNTS;
    call.is_step  = true; /* so that it differs from an allgather */
    return call;
}

static fsdpi_call step_of(const fsdpi_purpose *purpose, const void *shard, void *full, size_t count, fsdp_dtype dtype)
{
    fsdpi_call call = call_of(purpose->name, shard, full, count, dtype);

    call.label       = purpose->label;
    call.is_step     = true;
    call.is_reserved = purpose->reserved;
    return call;
}

fsdp_status fsdpi_iallgather(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *shard, void *full,
                             size_t count, fsdp_dtype dtype, fsdp_request **request)
{
    fsdpi_call call = step_of(purpose, shard, full, count, dtype);

    return fsdpi_issue_checked(ctx, &call, FSDPI_PART, FSDPI_WHOLE, purpose->status, request);
}

fsdp_status fsdpi_allgather(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *shard, void *full,
                            size_t count, fsdp_dtype dtype)
{
    fsdpi_call call = step_of(purpose, shard, full, count, dtype);

    return fsdpi_run_checked(ctx, &call, FSDPI_PART, FSDPI_WHOLE, purpose->status);
}

static fsdpi_call step_of_v(const fsdpi_purpose *purpose, const void *shard, void *full, fsdpi_begins *begins,
                            const void *divided, fsdp_dtype dtype)
{
    fsdpi_call call = step_of(purpose, shard, full, 0, dtype);

    call.begins   = begins;
    call.divided  = divided;
    call.division = FSDPI_DIVISION_COUNTS;
    return call;
}

fsdp_status fsdpi_iallgatherv(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *shard, void *full,
                              fsdpi_begins *begins, const void *divided, fsdp_dtype dtype, fsdp_request **request)
{
    fsdpi_call call = step_of_v(purpose, shard, full, begins, divided, dtype);

    return fsdpi_issue_checked(ctx, &call, FSDPI_PART, FSDPI_WHOLE, purpose->status, request);
}

fsdp_status fsdp_iallgather(fsdp_context *ctx, const void *shard, void *full, size_t count, fsdp_dtype dtype,
                            fsdp_request **request)
{
    fsdpi_call call = call_of("fsdp_allgather", shard, full, count, dtype);

    return fsdpi_issue_checked(ctx, &call, FSDPI_PART, FSDPI_WHOLE, FSDP_OK, request);
}

fsdp_status fsdp_allgather(fsdp_context *ctx, const void *shard, void *full, size_t count, fsdp_dtype dtype)
{
    const fsdpi_plain_call plain = {&ALLGATHER.base.collective, shard, full, count, dtype, 0};
    fsdp_status            status;

    if (fsdpi_run_again(ctx, &plain, &status)) {
        return status;
    }
    fsdpi_call call = call_of("fsdp_allgather", shard, full, count, dtype);

    return fsdpi_run_checked(ctx, &call, FSDPI_PART, FSDPI_WHOLE, FSDP_OK);
}

fsdp_status fsdp_iallgatherv(fsdp_context *ctx, const void *shard, void *full, const size_t *counts, fsdp_dtype dtype,
                             fsdp_request **request)
{
    fsdpi_call call = call_of_v(shard, full, counts, dtype);

    return fsdpi_issue_checked(ctx, &call, FSDPI_PART, FSDPI_WHOLE, FSDP_OK, request);
}

fsdp_status fsdp_allgatherv(fsdp_context *ctx, const void *shard, void *full, const size_t *counts, fsdp_dtype dtype)
{
    fsdpi_call call = call_of_v(shard, full, counts, dtype);

    return fsdpi_run_checked(ctx, &call, FSDPI_PART, FSDPI_WHOLE, FSDP_OK);
}
