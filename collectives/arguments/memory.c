#include "collectives/arguments/memory.h"

#include "collectives/arguments/slices.h"
#include "lib/context/context.h"
#include "lib/context/gpu_context.h"
#include "lib/device/gpu.h"
#include "lib/device/mapped.h"

/* An address that cannot be one, or that was a symmetric buffer's, is found before anything is read there. */
static inline fsdp_status check_address(fsdp_context *ctx, const fsdpi_call *call, const void *buffer, size_t bytes)
{
    if (bytes == 0 || buffer == FSDP_IN_PLACE) {
        return FSDP_OK;
    }
    if (ctx->buffers.n_freed > 0) {
        const fsdpi_buffer *symmetric = fsdpi_buffer_of(&ctx->buffers, buffer, 0);
        if (symmetric != NULL && symmetric->freed) {
            return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: %p is in a symmetric buffer that has been freed",
                                       call->name, buffer);
        }
    }
    if (!fsdpi_is_mapped(&ctx->mapped, buffer, bytes)) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_ARG,
            "%s: %zu bytes at %p are neither host memory nor that of a known device; pass the address of a "
            "buffer of that size",
            call->name, bytes, buffer);
    }
    return FSDP_OK;
}

fsdp_status fsdpi_is_on_device_of(fsdp_context *ctx, const char *function, const void *buffer, size_t bytes,
                                  bool *on_device)
{
    fsdpi_gpu_device *device = ctx->gpu.device;

    *on_device = false;
    if (ctx->n_gpus == 0 || bytes == 0 || buffer == FSDP_IN_PLACE) {
        return FSDP_OK;
    }
    if (device == NULL && fsdpi_is_gpu_memory(buffer)) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_UNSUPPORTED,
            "%s: %p is GPU memory, and this context uses no GPU (%s); pass host memory, to which it has "
            "been copied",
            function, buffer, fsdpi_gpu_why_none(ctx));
    }
    const fsdpi_memory_place place = device != NULL ? device->ops->place_of(device, buffer) : FSDPI_PLACE_HOST;
    if (place == FSDPI_PLACE_OTHER) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_ARG,
            "%s: %p is memory of another GPU than %d, which this context uses; select that one before "
            "memory is allocated, or copy it there",
            function, buffer, device->number);
    }
    *on_device = place == FSDPI_PLACE_DEVICE;
    return FSDP_OK;
}

static __attribute__((noinline)) fsdp_status look_at_memory(fsdp_context *ctx, fsdpi_call *call)
{
    const bool has_in = call->in_bytes > 0 && call->in != FSDP_IN_PLACE;
    bool       in = false, out = false;

    if (ctx->n_gpus > 0) {
        FSDP_TRY(fsdpi_is_on_device_of(ctx, call->name, call->in, call->in_bytes, &in));
        FSDP_TRY(fsdpi_is_on_device_of(ctx, call->name, call->out, call->out_bytes, &out));
    }
    if (has_in && call->out_bytes > 0 && in != out) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_ARG, "%s: the %s buffer (%p) is on the GPU, the other one (%p) is not; pass two of one kind",
            call->name, in ? "input" : "output", in ? call->in : call->out, in ? call->out : call->in);
    }
    call->on_device = in || out;
    if (call->on_device) {
        return FSDP_OK;
    }
    FSDP_TRY(check_address(ctx, call, call->in, call->in_bytes));
    return check_address(ctx, call, call->out, call->out_bytes);
}

/* Host memory that is known: where no symmetric buffer has been freed, and no GPU could have it, there is nothing to find. */
static inline bool is_harmless(const fsdp_context *ctx, const void *buffer, size_t bytes)
{
    return bytes == 0 || buffer == FSDP_IN_PLACE || fsdpi_is_known(&ctx->mapped, buffer, bytes);
}

fsdp_status fsdpi_check_memory(fsdp_context *ctx, fsdpi_call *call)
{
    if (ctx->n_gpus == 0 && ctx->buffers.n_freed == 0 && is_harmless(ctx, call->in, call->in_bytes) &&
        is_harmless(ctx, call->out, call->out_bytes)) {
        call->on_device = false;
        return FSDP_OK;
    }
    return look_at_memory(ctx, call);
}

/* Memory other than the last call's must be known to be mapped and not be a freed buffer's, and input and output must not overlap. */
bool fsdpi_takes_memory_of(fsdp_request *request, const fsdpi_plain_call *call)
{
    const fsdp_context *ctx      = request->ctx;
    fsdpi_call         *before   = &request->call;
    const bool          in_place = call->in == FSDP_IN_PLACE;

    if (call->in == before->given && call->out == before->out) {
        return true;
    }
    if (ctx->buffers.n_freed > 0 || in_place != (before->given == FSDP_IN_PLACE) || call->out == FSDP_IN_PLACE ||
        before->in_bytes == 0 || before->out_bytes == 0) {
        return false;
    }
    const void *in =
        in_place ? (const void *)((uintptr_t)call->out + ((uintptr_t)before->in - (uintptr_t)before->out)) : call->in;
    if (!fsdpi_is_known(&ctx->mapped, in, before->in_bytes) ||
        !fsdpi_is_known(&ctx->mapped, call->out, before->out_bytes) ||
        (!in_place && fsdpi_overlap(in, before->in_bytes, call->out, before->out_bytes))) {
        return false;
    }
    before->given = call->in;
    before->in    = in;
    before->out   = call->out;
    return true;
}
