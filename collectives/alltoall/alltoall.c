#include "collectives/alltoall/alltoall.h"
#include "collectives/arguments/arguments.h"
#include "collectives/blocks/staged.h"
#include "collectives/collectives.h"
#include "collectives/select/select_algorithm.h"
#include "lib/context/context.h"

/* Between nodes, what does not ride on the agreement goes pairwise, whatever was asked for: nothing else serves an alltoall there. */
static const fsdpi_algorithm *choose(fsdp_request *request)
{
    if (request->ctx->nodes.count == 1 || (request->flags & FSDPI_FLAG_OFFERED) != 0) {
        return fsdpi_select_choose(request);
    }
    return request->call.on_device ? &fsdpi_alltoall_pairwise_device : &fsdpi_alltoall_pairwise;
}

static const fsdpi_selection ALLTOALL = {
    .base        = {.collective = {.name     = "alltoall",
                                   .id       = FSDPI_ALLTOALL,
                                   .prepare  = fsdpi_alltoall_prepare,
                                   .offer    = fsdpi_select_offer,
                                   .record   = fsdpi_select_record,
                                   .portion  = fsdpi_select_portion,
                                   .place    = fsdpi_select_place,
                                   .expected = fsdpi_select_expected,
                                   .choose   = choose},
                    .pattern    = FSDPI_TRANSPOSE},
    .menu        = {[FSDP_ALGO_STAGED] = &fsdpi_staged,
                    [FSDP_ALGO_DIRECT] = &fsdpi_alltoall_direct,
                    [FSDP_ALGO_CMA]    = &fsdpi_alltoall_cma,
                    [FSDP_ALGO_RAILS]  = &fsdpi_alltoall_pairwise},
    .on_device   = {[FSDP_ALGO_STAGED] = &fsdpi_staged_device,
                    [FSDP_ALGO_DIRECT] = &fsdpi_alltoall_device,
                    [FSDP_ALGO_RAILS]  = &fsdpi_alltoall_pairwise_device},
    .is_separate = true,
};

static fsdpi_call call_of(const char *name, const void *in, void *out, size_t count, fsdp_dtype dtype)
{
    return (fsdpi_call){.collective = &ALLTOALL.base.collective,
                        .name       = name,
                        .in         = in,
                        .out        = out,
                        .count      = count,
                        .dtype      = dtype,
                        .division   = FSDPI_DIVISION_EQUAL,
                        .has_data   = true};
}

fsdp_status fsdpi_alltoall(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *in, void *out, size_t count,
                           fsdp_dtype dtype)
{
    fsdpi_call call = call_of(purpose->name, in, out, count, dtype);

    call.label   = purpose->label;
    call.is_step = true;
    return fsdpi_run_checked(ctx, &call, FSDPI_WHOLE, FSDPI_WHOLE, purpose->status);
}

fsdp_status fsdp_ialltoall(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype,
                           fsdp_request **request)
{
    fsdpi_call call = call_of("fsdp_alltoall", in, out, count, dtype);

    return fsdpi_issue_checked(ctx, &call, FSDPI_WHOLE, FSDPI_WHOLE, FSDP_OK, request);
}

fsdp_status fsdp_alltoall(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype)
{
    fsdpi_call call = call_of("fsdp_alltoall", in, out, count, dtype);

    return fsdpi_run_checked(ctx, &call, FSDPI_WHOLE, FSDPI_WHOLE, FSDP_OK);
}
