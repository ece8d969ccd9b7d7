#include "collectives/arguments/arguments.h"

#include <stdint.h>

#include "collectives/arguments/memory.h"
#include "collectives/arguments/slices.h"
#include "kernels/host/element.h"
#include "lib/context/context.h"

/* Sets `whole` and `width`. False where the number of bytes does not fit. */
static bool measure(const fsdp_context *ctx, fsdpi_call *call)
{
    size_t bytes;

    call->width = fsdpi_element_bytes(call->dtype);
    call->whole = call->count;
    if (call->division == FSDPI_DIVISION_EQUAL &&
        __builtin_mul_overflow(call->count, (size_t)ctx->size, &call->whole)) {
        return false;
    }
    if (call->division == FSDPI_DIVISION_COUNTS) {
        call->whole = call->begins != NULL ? call->begins(call->divided, ctx->size) : 0;
        for (int r = 0; r < ctx->size && call->counts != NULL; r++) {
            if (__builtin_add_overflow(call->whole, call->counts[r], &call->whole)) {
                return false;
            }
        }
    }
    return !__builtin_mul_overflow(call->whole, call->width, &bytes) && bytes <= PTRDIFF_MAX;
}

static size_t extent_bytes(const fsdp_context *ctx, const fsdpi_call *call, fsdpi_extent extent)
{
    if (extent == FSDPI_NOTHING) {
        return 0;
    }
    if (extent == FSDPI_WHOLE) {
        return call->whole * call->width;
    }
    return call->width * (call->division == FSDPI_DIVISION_COUNTS ? fsdpi_given_count(call, ctx->rank) : call->count);
}

static fsdp_status check_values(fsdp_context *ctx, fsdpi_call *call)
{
    if (fsdpi_element_bytes(call->dtype) == 0) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: %d is no element type; use one of fsdp_dtype", call->name,
                                   (int)call->dtype);
    }
    if (call->has_op && ((int)call->op < 0 || (int)call->op >= FSDP_N_REDOPS)) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: %d is no reduction; use one of fsdp_redop", call->name,
                                   (int)call->op);
    }
    if (call->has_root && (call->root < 0 || call->root >= ctx->size)) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: root %d is no rank; ranks are 0 to %d", call->name,
                                   call->root, ctx->size - 1);
    }
    if (call->division == FSDPI_DIVISION_COUNTS && call->counts == NULL && call->begins == NULL) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: the counts are NULL; pass %d of them", call->name,
                                   ctx->size);
    }
    if (!measure(ctx, call)) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_ARG,
            "%s: the size in bytes of %zu %s elements%s overflows; counts are elements, "
            "not bytes, of one rank",
            call->name, call->division == FSDPI_DIVISION_COUNTS ? fsdpi_given_count(call, ctx->rank) : call->count,
            fsdp_dtype_name(call->dtype), call->division == FSDPI_DIVISION_ROOT ? "" : " over all ranks");
    }
    return FSDP_OK;
}

/* A part may be this rank's own slot of the whole, and equal extents may be the same buffer: then nothing is in the way. */
static bool overlap_is_meant(const fsdp_request *request, fsdpi_extent in, fsdpi_extent out)
{
    const fsdpi_call *call   = &request->call;
    const size_t      offset = fsdpi_slice_of(request, request->ctx->rank).begin * call->width;

    if (in == out) {
        return call->in == call->out && call->division != FSDPI_DIVISION_EQUAL;
    }
    return in == FSDPI_PART ? (const char *)call->in == (const char *)call->out + offset
                            : (const char *)call->out == (const char *)call->in + offset;
}

static fsdp_status null_buffer(fsdp_context *ctx, const fsdpi_call *call)
{
    const bool in = call->in_bytes > 0 && call->in == NULL;

    return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: the %s buffer is NULL; it must hold %zu bytes", call->name,
                               in ? "input" : "output", in ? call->in_bytes : call->out_bytes);
}

static fsdp_status check_overlap(fsdp_context *ctx, const fsdpi_call *call, fsdpi_extent in, fsdpi_extent out)
{
    const fsdp_request probe = {.ctx = ctx, .call = *call};

    if (overlap_is_meant(&probe, in, out)) {
        return FSDP_OK;
    }
    return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                               "%s: input (%p, %zu bytes) and output (%p, %zu bytes) overlap; use separate buffers or "
                               "FSDP_IN_PLACE",
                               call->name, call->in, call->in_bytes, call->out, call->out_bytes);
}

static fsdp_status check_buffers(fsdp_context *ctx, fsdpi_call *call, fsdpi_extent in, fsdpi_extent out)
{
    if ((call->in_bytes > 0 && call->in == NULL) || (call->out_bytes > 0 && call->out == NULL)) {
        return null_buffer(ctx, call);
    }
    if (call->out_bytes > 0 && call->out == FSDP_IN_PLACE) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "%s: FSDP_IN_PLACE stands for an input; the output must be a buffer", call->name);
    }
    if (call->in_bytes > 0 && call->in == FSDP_IN_PLACE && out == FSDPI_NOTHING) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "%s: FSDP_IN_PLACE is for rank %d, the root; pass the input elsewhere", call->name,
                                   call->root);
    }
    if (call->in != FSDP_IN_PLACE && call->in_bytes > 0 && call->out_bytes > 0 &&
        fsdpi_overlap(call->in, call->in_bytes, call->out, call->out_bytes)) {
        FSDP_TRY(check_overlap(ctx, call, in, out));
    }
    return fsdpi_check_memory(ctx, call);
}

static void replace_in_place(fsdp_context *ctx, fsdpi_call *call, fsdpi_extent in)
{
    const fsdp_request probe = {.ctx = ctx, .call = *call};

    call->in = call->out;
    if (in == FSDPI_PART && call->in_bytes > 0) {
        call->in = (unsigned char *)call->out + fsdpi_slice_of(&probe, ctx->rank).begin * call->width;
    }
}

/* The status to issue the call with. Sets what `call` has to say of its buffers, and replaces FSDP_IN_PLACE. */
static fsdp_status check_arguments(fsdp_context *ctx, fsdpi_call *call, fsdpi_extent in, fsdpi_extent out,
                                   fsdp_status status)
{
    call->given = call->in;
    if (status != FSDP_OK || !call->has_data) {
        return status;
    }
    FSDP_TRY(check_values(ctx, call));
    call->in_bytes  = extent_bytes(ctx, call, in);
    call->out_bytes = extent_bytes(ctx, call, out);
    FSDP_TRY(check_buffers(ctx, call, in, out));
    if (call->in == FSDP_IN_PLACE) {
        replace_in_place(ctx, call, in);
    }
    return FSDP_OK;
}

static fsdp_status no_context(const fsdpi_call *call)
{
    return fsdpi_fail_together(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_init", call->name);
}

fsdp_status fsdpi_issue_checked(fsdp_context *ctx, fsdpi_call *call, fsdpi_extent in, fsdpi_extent out,
                                fsdp_status status, fsdp_request **request)
{
    if (ctx == NULL) {
        return no_context(call);
    }
    if (request == NULL) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: the place for the request is NULL", call->name);
    }
    *request = NULL;
    status   = check_arguments(ctx, call, in, out, status);
    return fsdpi_issue(ctx, call, status, request);
}

fsdp_status fsdpi_run_checked(fsdp_context *ctx, fsdpi_call *call, fsdpi_extent in, fsdpi_extent out,
                              fsdp_status status)
{
    if (ctx == NULL) {
        return no_context(call);
    }
    status = check_arguments(ctx, call, in, out, status);
    return fsdpi_run(ctx, call, status);
}
