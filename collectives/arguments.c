#include "collectives/arguments.h"

#include <stdint.h>

#include "kernels/host/element.h"
#include "lib/context.h"
#include "lib/device/gpu.h"
#include "lib/device/gpu_request.h"
#include "lib/device/mapped.h"

/* Parts of an even split begin at multiples of this, so that no two ranks write to one cache line. */
enum { SPLIT_MULTIPLE = 64 };

static fsdpi_slice even_split(size_t count, int size, int rank)
{
    const size_t even  = count / (size_t)size + (count % (size_t)size != 0);
    const size_t part  = (even + SPLIT_MULTIPLE - 1) / SPLIT_MULTIPLE * SPLIT_MULTIPLE;
    const size_t begin = part > 0 && (size_t)rank > count / part ? count : part * (size_t)rank;
    const size_t left  = count - (begin < count ? begin : count);

    return (fsdpi_slice){.begin = count - left, .count = left < part ? left : part};
}

fsdpi_slice fsdpi_slice_of(const fsdp_request *request, int rank)
{
    const fsdpi_call *call = &request->call;
    fsdpi_slice       part = {0, 0};

    if (call->division == FSDPI_DIVISION_EQUAL) {
        return (fsdpi_slice){.begin = call->count * (size_t)rank, .count = call->count};
    }
    switch (call->division) {
    case FSDPI_DIVISION_EQUAL:
        break;
    case FSDPI_DIVISION_COUNTS:
        for (int r = 0; r < rank; r++) {
            part.begin += call->counts[r];
        }
        part.count = call->counts[rank];
        return part;
    case FSDPI_DIVISION_SPLIT:
        return even_split(call->count, request->ctx->size, rank);
    case FSDPI_DIVISION_ROOT:
        part.count = rank == call->root ? call->count : 0;
        return part;
    }
    return part;
}

size_t fsdpi_largest_slice(const fsdp_request *request)
{
    size_t largest = 0;

    if (request->call.division == FSDPI_DIVISION_EQUAL) {
        return request->call.count;
    }

    for (int r = 0; r < request->ctx->size; r++) {
        const size_t count = fsdpi_slice_of(request, r).count;
        largest            = count > largest ? count : largest;
    }
    return largest;
}

/* The output is the part itself, unless it holds the whole; then this rank's part of that. */
unsigned char *fsdpi_own_result(const fsdp_request *request)
{
    const fsdpi_call *call  = &request->call;
    const size_t      begin = fsdpi_slice_of(request, request->ctx->rank).begin * call->width;
    unsigned char    *out   = call->out;

    if (call->division == FSDPI_DIVISION_SPLIT) {
        return out != NULL ? out + begin : NULL;
    }
    if (call->division != FSDPI_DIVISION_ROOT && fsdpi_overlap(call->in, call->in_bytes, out, call->out_bytes)) {
        return (unsigned char *)(uintptr_t)call->in + begin; /* in place: the caller has given it to be written to */
    }
    return out;
}

/* Where the two overlap, through this rank's slot in device memory, a piece after the other. */
static void settle_on_device(fsdp_request *request, unsigned char *to, const unsigned char *from, size_t bytes)
{
    fsdp_context  *ctx  = request->ctx;
    unsigned char *slot = ctx->gpu.peers[ctx->nodes.position].slots;

    if (!fsdpi_overlap(to, bytes, from, bytes)) {
        fsdpi_gpu_move(request, to, from, bytes);
        return;
    }
    fsdpi_gpu_hear_slots_free(request, 0); /* that of even letters */
    for (size_t at = 0; at < bytes; at += ctx->box.slot_bytes) {
        const size_t n = bytes - at < ctx->box.slot_bytes ? bytes - at : ctx->box.slot_bytes;

        fsdpi_gpu_move(request, slot, from + at, n);
        fsdpi_gpu_move(request, to + at, slot, n);
    }
    fsdpi_gpu_say_done(request, 0);
}

void fsdpi_settle(fsdp_request *request)
{
    const fsdpi_call    *call  = &request->call;
    const unsigned char *own   = fsdpi_own_result(request);
    const size_t         bytes = fsdpi_slice_of(request, request->ctx->rank).count * call->width;

    if (call->division == FSDPI_DIVISION_SPLIT || own == call->out) {
        return;
    }
    if (call->on_device) {
        settle_on_device(request, call->out, own, bytes);
    } else {
        request->ctx->device->copy(call->out, own, bytes);
    }
}

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
        call->whole = 0;
        for (int r = 0; r < ctx->size; r++) {
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
    return call->width * (call->division == FSDPI_DIVISION_COUNTS ? call->counts[ctx->rank] : call->count);
}

static fsdp_status check_values(fsdp_context *ctx, fsdpi_call *call)
{
    if (fsdpi_element_bytes(call->dtype) == 0) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: %d is no element type; use one of fsdp_dtype", call->name,
                          (int)call->dtype);
    }
    if (call->has_op && ((int)call->op < 0 || (int)call->op >= FSDP_N_REDOPS)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: %d is no reduction; use one of fsdp_redop", call->name,
                          (int)call->op);
    }
    if (call->has_root && (call->root < 0 || call->root >= ctx->size)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: root %d is no rank; ranks are 0 to %d", call->name, call->root,
                          ctx->size - 1);
    }
    if (call->division == FSDPI_DIVISION_COUNTS && call->counts == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: the counts are NULL; pass %d of them", call->name, ctx->size);
    }
    if (!measure(ctx, call)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG,
                          "%s: the size in bytes of %zu %s elements%s overflows; counts are elements, "
                          "not bytes, of one rank",
                          call->name, call->division == FSDPI_DIVISION_COUNTS ? call->counts[ctx->rank] : call->count,
                          fsdp_dtype_name(call->dtype), call->division == FSDPI_DIVISION_ROOT ? "" : " over all ranks");
    }
    return FSDP_OK;
}

bool fsdpi_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    const uintptr_t a_begin = (uintptr_t)a, b_begin = (uintptr_t)b;

    return a_begin < b_begin + b_bytes && b_begin < a_begin + a_bytes;
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

/* An address that cannot be one, or that was a symmetric buffer's, is found before anything is read there. */
static fsdp_status check_address(fsdp_context *ctx, const fsdpi_call *call, const void *buffer, size_t bytes)
{
    if (bytes == 0 || buffer == FSDP_IN_PLACE) {
        return FSDP_OK;
    }
    if (ctx->buffers.n_freed > 0) {
        const fsdpi_buffer *symmetric = fsdpi_buffer_of(ctx, buffer, 0);
        if (symmetric != NULL && symmetric->freed) {
            return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: %p is in a symmetric buffer that has been freed", call->name,
                              buffer);
        }
    }
    if (!fsdpi_is_mapped(&ctx->known_pages, buffer, bytes)) {
        return fsdpi_fail(
            ctx, FSDP_ERR_ARG,
            "%s: %zu bytes at %p are neither host memory nor that of a known device; pass the address of a "
            "buffer of that size",
            call->name, bytes, buffer);
    }
    return FSDP_OK;
}

/* Whether a buffer is on this rank's GPU. */
static fsdp_status classify(fsdp_context *ctx, const fsdpi_call *call, const void *buffer, size_t bytes,
                            bool *on_device)
{
    fsdpi_gpu_device *device = ctx->gpu.device;

    *on_device = false;
    if (ctx->n_gpus == 0 || bytes == 0 || buffer == FSDP_IN_PLACE) {
        return FSDP_OK;
    }
    if (device == NULL && fsdpi_is_gpu_memory(buffer)) {
        return fsdpi_fail(ctx, FSDP_ERR_UNSUPPORTED,
                          "%s: %p is GPU memory, and this context uses no GPU (%s); pass host memory, to which it has "
                          "been copied",
                          call->name, buffer, fsdpi_gpu_why_none(ctx));
    }
    const fsdpi_memory_place place = device != NULL ? device->ops->place_of(device, buffer) : FSDPI_PLACE_HOST;
    if (place == FSDPI_PLACE_OTHER) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG,
                          "%s: %p is memory of another GPU than %d, which this context uses; select that one before "
                          "memory is allocated, or copy it there",
                          call->name, buffer, device->number);
    }
    *on_device = place == FSDPI_PLACE_DEVICE;
    return FSDP_OK;
}

/* Sets call->on_device. Both buffers are of one kind. */
static fsdp_status check_places(fsdp_context *ctx, fsdpi_call *call)
{
    const bool has_in = call->in_bytes > 0 && call->in != FSDP_IN_PLACE;
    bool       in, out;

    FSDP_TRY(classify(ctx, call, call->in, call->in_bytes, &in));
    FSDP_TRY(classify(ctx, call, call->out, call->out_bytes, &out));
    if (has_in && call->out_bytes > 0 && in != out) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG,
                          "%s: the %s buffer (%p) is on the GPU, the other one (%p) is not; pass two of one kind",
                          call->name, in ? "input" : "output", in ? call->in : call->out, in ? call->out : call->in);
    }
    call->on_device = in || out;
    if (call->on_device) {
        return FSDP_OK;
    }
    FSDP_TRY(check_address(ctx, call, call->in, call->in_bytes));
    return check_address(ctx, call, call->out, call->out_bytes);
}

static fsdp_status null_buffer(fsdp_context *ctx, const fsdpi_call *call)
{
    const bool in = call->in_bytes > 0 && call->in == NULL;

    return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: the %s buffer is NULL; it must hold %zu bytes", call->name,
                      in ? "input" : "output", in ? call->in_bytes : call->out_bytes);
}

static fsdp_status check_overlap(fsdp_context *ctx, const fsdpi_call *call, fsdpi_extent in, fsdpi_extent out)
{
    const fsdp_request probe = {.ctx = ctx, .call = *call};

    if (overlap_is_meant(&probe, in, out)) {
        return FSDP_OK;
    }
    return fsdpi_fail(ctx, FSDP_ERR_ARG,
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
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: FSDP_IN_PLACE stands for an input; the output must be a buffer",
                          call->name);
    }
    if (call->in_bytes > 0 && call->in == FSDP_IN_PLACE && out == FSDPI_NOTHING) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: FSDP_IN_PLACE is for rank %d, the root; pass the input elsewhere",
                          call->name, call->root);
    }
    if (call->in != FSDP_IN_PLACE && call->in_bytes > 0 && call->out_bytes > 0 &&
        fsdpi_overlap(call->in, call->in_bytes, call->out, call->out_bytes)) {
        FSDP_TRY(check_overlap(ctx, call, in, out));
    }
    return check_places(ctx, call);
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
    return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_init", call->name);
}

fsdp_status fsdpi_issue_checked(fsdp_context *ctx, const fsdpi_call *call, fsdpi_extent in, fsdpi_extent out,
                                fsdp_status status, fsdp_request **request)
{
    fsdpi_call settled = *call;

    if (ctx == NULL) {
        return no_context(call);
    }
    if (request == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: the place for the request is NULL", call->name);
    }
    *request = NULL;
    status   = check_arguments(ctx, &settled, in, out, status);
    return fsdpi_issue(ctx, &settled, status, request);
}

fsdp_status fsdpi_run_checked(fsdp_context *ctx, const fsdpi_call *call, fsdpi_extent in, fsdpi_extent out,
                              fsdp_status status)
{
    fsdpi_call settled = *call;

    if (ctx == NULL) {
        return no_context(call);
    }
    status = check_arguments(ctx, &settled, in, out, status);
    return fsdpi_run(ctx, &settled, status);
}
