/* Moves and reduces with the kernels of the host, at once. */
#include <string.h>

#include "collectives/arguments/slices.h"
#include "collectives/reach/mover.h"
#include "lib/context/context.h"

/*
 * However large the last-level cache: one that reports more for each rank serves other cores too, which a virtual machine
 * does not show. With 105 MiB reported to two cores, 16 MiB went 1.4 to 1.7 times as fast past the caches.
 */
enum { MOST_CACHE_OF_A_RANK = 8 << 20 };

bool fsdpi_is_large(const fsdp_request *request)
{
    const fsdp_context *ctx      = request->ctx;
    const fsdpi_call   *call     = &request->call;
    const size_t        larger   = call->in_bytes > call->out_bytes ? call->in_bytes : call->out_bytes;
    const bool          in_place = fsdpi_overlap(call->in, call->in_bytes, call->out, call->out_bytes);
    const size_t        own      = in_place ? larger : call->in_bytes + call->out_bytes;
    const size_t        share    = ctx->machine.cache_bytes / (size_t)ctx->nodes.size;

    return own > (share < MOST_CACHE_OF_A_RANK ? share : MOST_CACHE_OF_A_RANK);
}

static void move(fsdp_request *request, void *to, const void *from, size_t bytes)
{
    request->ctx->kernels->copy(to, from, bytes);
}

static void copy(fsdp_request *request, void *to, const void *from, size_t bytes)
{
    if (to == from || bytes == 0) {
        return;
    }
    if (fsdpi_is_large(request)) {
        request->ctx->kernels->stream(to, from, bytes);
    } else {
        memcpy(to, from, bytes);
    }
}

static void settle(fsdp_request *request, void *to, const void *from, size_t bytes)
{
    request->ctx->device->copy(to, from, bytes);
}

static void reduce(fsdp_request *request, void *to, size_t n, size_t count, fsdp_redop op, size_t divisor)
{
    const fsdp_context *ctx = request->ctx;

    ctx->kernels->reduce(to, ctx->operands, n, count, request->call.dtype, op, divisor);
}

static void reduce_result(fsdp_request *request, void *to, size_t n, size_t count, fsdp_redop op, size_t divisor)
{
    const fsdp_context *ctx = request->ctx;

    if (fsdpi_is_large(request)) {
        ctx->kernels->reduce_into(&to, 1, ctx->operands, n, count, request->call.dtype, op, divisor, 1);
    } else {
        reduce(request, to, n, count, op, divisor);
    }
}

static void widen(fsdp_request *request, void *to, const void *from, size_t count)
{
    request->ctx->kernels->cast(to, FSDP_F32, from, request->call.dtype, count);
}

static void narrow(fsdp_request *request, void *to, const void *from, size_t count)
{
    request->ctx->kernels->cast(to, request->call.dtype, from, FSDP_F32, count);
}

static void reduce_wide(fsdp_request *request, void *to, const void *const *in, size_t n, size_t count, fsdp_redop op,
                        size_t divisor)
{
    request->ctx->kernels->reduce(to, in, n, count, FSDP_F32, op, divisor);
}

static unsigned char *in_mailbox(const fsdp_request *request, void *memory)
{
    (void)request;
    return memory;
}

const fsdpi_mover fsdpi_host_mover = {.move          = move,
                                      .copy          = copy,
                                      .settle        = settle,
                                      .reduce        = reduce,
                                      .reduce_result = reduce_result,
                                      .widen         = widen,
                                      .narrow        = narrow,
                                      .reduce_wide   = reduce_wide,
                                      .in_mailbox    = in_mailbox};
