/* Moves and reduces in the stream of the operation. */
#include "collectives/arguments/slices.h"
#include "collectives/reach/mover.h"
#include "kernels/gpu.h"
#include "lib/base/error.h"
#include "lib/context/context.h"
#include "lib/progress/gpu_request.h"

static void copy(fsdp_request *request, void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        fsdpi_gpu_move(request, to, from, bytes);
    }
}

/* Where the two overlap, through this rank's slot in device memory, a piece after the other. */
static void settle(fsdp_request *request, void *to, const void *from, size_t bytes)
{
    fsdp_context  *ctx  = request->ctx;
    unsigned char *slot = ctx->gpu.peers[ctx->nodes.position].slots;

    if (!fsdpi_overlap(to, bytes, from, bytes)) {
        fsdpi_gpu_move(request, to, from, bytes);
        return;
    }
    fsdpi_gpu_hear_slots_free(request, 0); /* that of even letters */
    for (size_t at = 0; at < bytes; at += request->lane->box.slot_bytes) {
        const size_t n = bytes - at < request->lane->box.slot_bytes ? bytes - at : request->lane->box.slot_bytes;

        fsdpi_gpu_move(request, slot, (const unsigned char *)from + at, n);
        fsdpi_gpu_move(request, (unsigned char *)to + at, slot, n);
    }
    fsdpi_gpu_say_done(request, 0);
}

/* Elements that are reduced in f32 and rounded once. */
static bool is_rounded_once(fsdp_dtype dtype)
{
    return dtype == FSDP_BF16 || dtype == FSDP_F16;
}

/*
 * A kernel takes so many operands at most. The next one goes on with the result so far, in the same order: that has the same
 * bits, but for elements that are rounded once. Until the last one a mean is a sum.
 */
static void reduce(fsdp_request *request, void *to, size_t n, size_t count, fsdp_redop op, size_t divisor)
{
    const void     **in      = request->ctx->operands;
    const fsdp_redop partial = op == FSDP_AVG ? FSDP_SUM : op;

    if (n > FSDPI_GPU_OPERANDS && is_rounded_once(request->call.dtype)) {
        fsdpi_take_local_verdict(request,
                                 fsdpi_fail(request->ctx, FSDP_ERR_UNSUPPORTED,
                                            "%s: a GPU reduces 16 bit elements from %d nodes at most through staging "
                                            "memory, and these are %zu; allocate both buffers with fsdp_buffer_alloc()",
                                            request->call.name, FSDPI_GPU_OPERANDS, n));
        return;
    }
    for (; n > FSDPI_GPU_OPERANDS; n -= FSDPI_GPU_OPERANDS - 1, in += FSDPI_GPU_OPERANDS - 1) {
        fsdpi_gpu_reduce_to(request, &to, 1, in, FSDPI_GPU_OPERANDS, count, partial, divisor);
        in[FSDPI_GPU_OPERANDS - 1] = to;
    }
    fsdpi_gpu_reduce_to(request, &to, 1, in, n, count, op, divisor);
}

static void widen(fsdp_request *request, void *to, const void *from, size_t count)
{
    fsdpi_gpu_cast_to(request, to, FSDP_F32, from, request->call.dtype, count);
}

static void narrow(fsdp_request *request, void *to, const void *from, size_t count)
{
    fsdpi_gpu_cast_to(request, to, request->call.dtype, from, FSDP_F32, count);
}

static void reduce_wide(fsdp_request *request, void *to, const void *const *in, size_t n, size_t count, fsdp_redop op,
                        size_t divisor)
{
    fsdpi_gpu_reduce_as(request, &to, 1, in, n, count, FSDP_F32, op, divisor);
}

static unsigned char *in_mailbox(const fsdp_request *request, void *memory)
{
    return fsdpi_gpu_view(&request->ctx->gpu, memory);
}

const fsdpi_mover fsdpi_device_mover = {.move          = fsdpi_gpu_move,
                                        .place         = fsdpi_gpu_move,
                                        .copy          = copy,
                                        .settle        = settle,
                                        .reduce        = reduce,
                                        .reduce_result = reduce,
                                        .place_reduced = reduce,
                                        .widen         = widen,
                                        .narrow        = narrow,
                                        .reduce_wide   = reduce_wide,
                                        .in_mailbox    = in_mailbox};
