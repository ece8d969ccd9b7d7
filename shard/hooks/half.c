/* Rounds, averages in the rounded type, widens. Sends 2 (N - 1) / N x 2 bytes per element. */
#include <stdio.h>

#include "shard/hooks/hook.h"

static bool applies(const fsdp_hook *hook, const fsdp_gradient *gradient)
{
    (void)hook;
    return gradient->ranks > 1;
}

static size_t scratch_bytes(const fsdp_hook *hook, const fsdp_gradient *gradient)
{
    return gradient->count * fsdp_dtype_size(hook->options.half);
}

static fsdp_status reduce(const fsdpi_reduction *reduction)
{
    const fsdpi_kernels *kernels = reduction->ctx->kernels;
    const fsdp_dtype     half    = reduction->hook->options.half;
    float               *values  = reduction->gradient->values;
    const size_t         count   = reduction->gradient->count;

    kernels->cast(reduction->scratch, half, values, FSDP_F32, count);
    FSDP_TRY(fsdpi_hook_average(reduction, FSDP_IN_PLACE, reduction->scratch, count, half));
    kernels->cast(values, FSDP_F32, reduction->scratch, half, count);
    return FSDP_OK;
}

const fsdpi_hook_method fsdpi_half_method = {.applies = applies, .scratch_bytes = scratch_bytes, .reduce = reduce};

fsdp_status fsdp_hook_half(fsdp_context *ctx, fsdp_dtype dtype, fsdp_hook **hook)
{
    static const char function[] = "fsdp_hook_half";
    const fsdp_hook   plan       = {.method = &fsdpi_half_method, .options.half = dtype};
    fsdp_status       status     = FSDP_OK;

    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_init", function);
    }
    if (dtype != FSDP_BF16 && dtype != FSDP_F16) {
        status = fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: element type %d, %s; use FSDP_BF16 or FSDP_F16", function,
                                     (int)dtype, fsdp_dtype_name(dtype));
    }
    return fsdpi_hook_make(ctx, function, &plan, fsdp_dtype_name(dtype), status, hook);
}
