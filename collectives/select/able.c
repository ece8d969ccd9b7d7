#include "collectives/select/able.h"

#include "fsdp/algorithms.h"
#include "lib/context/context.h"

static unsigned able_on_device(const fsdp_context *ctx, bool symmetric)
{
    const unsigned rails = 1U << FSDP_ALGO_RAILS | 1U << FSDP_ALGO_RING;

    if (ctx->nodes.count == 1) {
        return symmetric ? 1U << FSDP_ALGO_DIRECT : 0;
    }
    return symmetric || ctx->nodes.largest == 1 ? rails : 0;
}

static unsigned able_on_host(const fsdp_context *ctx, bool places, bool symmetric)
{
    unsigned able = 0;

    if (ctx->nodes.count == 1) {
        able |= places && symmetric ? 1U << FSDP_ALGO_DIRECT : 0;
        able |= places && ctx->peers.readable ? 1U << FSDP_ALGO_CMA : 0;
    } else if (places && (symmetric || ctx->peers.readable || ctx->nodes.largest == 1)) {
        able |= 1U << FSDP_ALGO_RAILS | 1U << FSDP_ALGO_RING;
    }
    return able;
}

unsigned fsdpi_able(const fsdp_request *request)
{
    const bool places    = (request->flags & FSDPI_FLAG_PLACES) != 0;
    const bool symmetric = (request->flags & FSDPI_FLAG_SYMMETRIC) != 0;
    const bool on_device = (request->flags & FSDPI_FLAG_DEVICE) != 0;

    return 1U << FSDP_ALGO_STAGED |
           (on_device ? able_on_device(request->ctx, symmetric) : able_on_host(request->ctx, places, symmetric));
}
