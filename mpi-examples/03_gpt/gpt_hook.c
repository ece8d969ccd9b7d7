#include "gpt_hook.h"

#include "mpi-examples/common/example_error.h"

static fsdp_status create_power_sgd(fsdp_context *ctx, size_t rank, fsdp_hook **hook)
{
    fsdp_power_sgd_options options = FSDP_POWER_SGD_OPTIONS_DEFAULT;

    options.rank = rank ? rank : options.rank;
    return fsdp_hook_power_sgd(ctx, &options, hook);
}

fsdp_status gpt_hook_create(fsdp_context *ctx, const gpt_options *options, fsdp_hook **hook)
{
    *hook = NULL;
    switch ((gpt_hook_kind)options->hook) {
    case GPT_HOOK_NONE:
        break;
    case GPT_HOOK_BF16:
        return fsdp_hook_half(ctx, FSDP_BF16, hook);
    case GPT_HOOK_F16:
        return fsdp_hook_half(ctx, FSDP_F16, hook);
    case GPT_HOOK_INT8:
        return fsdp_hook_int8(ctx, NULL, hook);
    case GPT_HOOK_POWER_SGD:
        return create_power_sgd(ctx, options->hook_rank, hook);
    }
    return FSDP_OK;
}

fsdp_status gpt_hook_traffic(fsdp_context *ctx, const fsdp_hook *hook, gpt_traffic *traffic)
{
    uint64_t sent = 0, uncompressed = 0;
    int64_t  sums[2];

    if (hook) {
        EXAMPLE_TRY(fsdp_hook_bytes(hook, &sent, &uncompressed));
    }
    sums[0] = (int64_t)sent;
    sums[1] = (int64_t)uncompressed;
    EXAMPLE_TRY(fsdp_allreduce(ctx, FSDP_IN_PLACE, sums, 2, FSDP_I64, FSDP_SUM));
    *traffic = (gpt_traffic){.sent = sums[0], .uncompressed = sums[1]};
    return FSDP_OK;
}
