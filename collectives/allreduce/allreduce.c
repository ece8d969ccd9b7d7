#include "collectives/allreduce/allreduce.h"
#include "collectives/arguments/arguments.h"
#include "collectives/blocks/staged.h"
#include "collectives/collectives.h"
#include "collectives/select/select_algorithm.h"

static const fsdpi_selection ALLREDUCE = {
    .base      = FSDPI_COLLECTIVE("allreduce", FSDPI_ALLREDUCE, FSDPI_COMBINE),
    .menu      = {[FSDP_ALGO_STAGED] = &fsdpi_allreduce_staged,
                  [FSDP_ALGO_DIRECT] = &fsdpi_allreduce_direct,
                  [FSDP_ALGO_CMA]    = &fsdpi_allreduce_cma,
                  [FSDP_ALGO_RAILS]  = &fsdpi_allreduce_rails,
                  [FSDP_ALGO_HALVES] = &fsdpi_allreduce_halves},
    .on_device = {[FSDP_ALGO_STAGED] = &fsdpi_staged_device,
                  [FSDP_ALGO_DIRECT] = &fsdpi_allreduce_device,
                  [FSDP_ALGO_RAILS]  = &fsdpi_allreduce_rails_device},
};

static fsdpi_call call_of(const char *name, const void *in, void *out, size_t count, fsdp_dtype dtype, fsdp_redop op)
{
    return (fsdpi_call){.collective = &ALLREDUCE.base.collective,
                        .name       = name,
                        .in         = in,
                        .out        = out,
                        .count      = count,
                        .dtype      = dtype,
                        .op         = op,
                        .division   = FSDPI_DIVISION_SPLIT,
                        .has_op     = true,
                        .has_data   = true};
}

static fsdpi_call step_of(const fsdpi_purpose *purpose, const void *in, void *out, size_t count, fsdp_dtype dtype,
                          fsdp_redop op)
{
    fsdpi_call call = call_of(purpose->name, in, out, count, dtype, op);

    call.label       = purpose->label;
    call.is_step     = true;
    call.is_reserved = purpose->reserved;
    return call;
}

fsdp_status fsdpi_iallreduce(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *in, void *out, size_t count,
                             fsdp_dtype dtype, fsdp_redop op, fsdp_request **request)
{
    fsdpi_call call = step_of(purpose, in, out, count, dtype, op);

    return fsdpi_issue_checked(ctx, &call, FSDPI_WHOLE, FSDPI_WHOLE, purpose->status, request);
}

fsdp_status fsdpi_allreduce(fsdp_context *ctx, const fsdpi_purpose *purpose, const void *in, void *out, size_t count,
                            fsdp_dtype dtype, fsdp_redop op)
{
    fsdpi_call call = step_of(purpose, in, out, count, dtype, op);

    return fsdpi_run_checked(ctx, &call, FSDPI_WHOLE, FSDPI_WHOLE, purpose->status);
}

fsdp_status fsdp_iallreduce(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype, fsdp_redop op,
                            fsdp_request **request)
{
    fsdpi_call call = call_of("fsdp_allreduce", in, out, count, dtype, op);

    return fsdpi_issue_checked(ctx, &call, FSDPI_WHOLE, FSDPI_WHOLE, FSDP_OK, request);
}

fsdp_status fsdp_allreduce(fsdp_context *ctx, const void *in, void *out, size_t count, fsdp_dtype dtype, fsdp_redop op)
{
    const fsdpi_plain_call plain = {&ALLREDUCE.base.collective, in, out, count, dtype, op};
    fsdp_status            status;

    if (fsdpi_run_again(ctx, &plain, &status)) {
        return status;
    }
    fsdpi_call call = call_of("fsdp_allreduce", in, out, count, dtype, op);

    return fsdpi_run_checked(ctx, &call, FSDPI_WHOLE, FSDPI_WHOLE, FSDP_OK);
}
