#include "collectives/select/able.h"

#include "fsdp/algorithms.h"
#include "kernels/gpu.h"
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

/* Through staging memory, a GPU rounds 16 bit elements once only if there are no more nodes than it takes operands. */
static bool are_too_many_nodes(const fsdp_request *request)
{
    const fsdpi_call *call = &request->call;

    return call->has_op && (call->dtype == FSDP_BF16 || call->dtype == FSDP_F16) &&
           request->ctx->nodes.count > FSDPI_GPU_OPERANDS;
}

unsigned fsdpi_able(const fsdp_request *request)
{
    const bool places    = (request->flags & FSDPI_FLAG_PLACES) != 0;
    const bool symmetric = (request->flags & FSDPI_FLAG_SYMMETRIC) != 0;
    const bool on_device = (request->flags & FSDPI_FLAG_DEVICE) != 0;

    const unsigned able =
        on_device ? able_on_device(request->ctx, symmetric) : able_on_host(request->ctx, places, symmetric);

    return able != 0 && on_device && are_too_many_nodes(request) ? able : 1U << FSDP_ALGO_STAGED | able;
}
