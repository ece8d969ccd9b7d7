#include "collectives/arguments.h"

#include <stdint.h>

#include "lib/context.h"
#include "lib/device/gpu.h"
#include "lib/memory.h"

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

    switch (call->division) {
    case FSDPI_DIVISION_EQUAL:
        return (fsdpi_slice){.begin = call->count * (size_t)rank, .count = call->count};
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

    for (int r = 0; r < request->ctx->size; r++) {
        const size_t count = fsdpi_slice_of(request, r).count;
        largest            = count > largest ? count : largest;
    }
    return largest;
}

/* False where the number of bytes does not fit. */
static bool full_bytes(const fsdp_context *ctx, const fsdpi_call *call, size_t *bytes)
{
    size_t elements = call->count;

    if (call->division == FSDPI_DIVISION_EQUAL && !fsdpi_multiply(call->count, (size_t)ctx->size, &elements)) {
        return false;
    }
    if (call->division == FSDPI_DIVISION_COUNTS) {
        elements = 0;
        for (int r = 0; r < ctx->size; r++) {
            if (call->counts[r] > SIZE_MAX - elements) {
                return false;
            }
            elements += call->counts[r];
        }
    }
    return fsdpi_multiply(elements, fsdp_dtype_size(call->dtype), bytes) && *bytes <= PTRDIFF_MAX;
}

/* The values have been checked: nothing overflows here. */
static size_t extent_bytes(const fsdp_context *ctx, const fsdpi_call *call, fsdpi_extent extent)
{
    size_t bytes = 0;

    if (extent == FSDPI_WHOLE) {
        (void)full_bytes(ctx, call, &bytes);
    } else if (extent == FSDPI_PART) {
        bytes = fsdp_dtype_size(call->dtype) *
                (call->division == FSDPI_DIVISION_COUNTS ? call->counts[ctx->rank] : call->count);
    }
    return bytes;
}

static fsdp_status check_values(fsdp_context *ctx, const fsdpi_call *call)
{
    size_t bytes;

    if (fsdp_dtype_size(call->dtype) == 0) {
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
    if (!full_bytes(ctx, call, &bytes)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG,
                          "%s: the size in bytes of %zu %s elements%s overflows; counts are elements, "
                          "not bytes, of one rank",
                          call->name, call->division == FSDPI_DIVISION_COUNTS ? call->counts[ctx->rank] : call->count,
                          fsdp_dtype_name(call->dtype), call->division == FSDPI_DIVISION_ROOT ? "" : " over all ranks");
    }
    return FSDP_OK;
}

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    const uintptr_t a_begin = (uintptr_t)a, b_begin = (uintptr_t)b;

    return a_begin < b_begin + b_bytes && b_begin < a_begin + a_bytes;
}

/* A part may be this rank's own slot of the whole, and equal extents may be the same buffer: then nothing is in the way. */
static bool overlap_is_meant(const fsdp_request *request, fsdpi_extent in, fsdpi_extent out)
{
    const fsdpi_call *call   = &request->call;
    const size_t      offset = fsdpi_slice_of(request, request->ctx->rank).begin * fsdp_dtype_size(call->dtype);

    if (in == out) {
        return call->in == call->out && call->division != FSDPI_DIVISION_EQUAL;
    }
    return in == FSDPI_PART ? (const char *)call->in == (const char *)call->out + offset
                            : (const char *)call->out == (const char *)call->in + offset;
}

static fsdp_status check_host_memory(fsdp_context *ctx, const fsdpi_call *call, const void *buffer, size_t bytes)
{
    if (ctx->n_gpus > 0 && bytes > 0 && buffer != FSDP_IN_PLACE && fsdpi_is_gpu_memory(buffer)) {
        return fsdpi_fail(ctx, FSDP_ERR_UNSUPPORTED,
                          "%s: %p is GPU memory; pass host memory, to which it has been copied", call->name, buffer);
    }
    return FSDP_OK;
}

static fsdp_status check_buffers(fsdp_context *ctx, const fsdpi_call *call, fsdpi_extent in, fsdpi_extent out)
{
    const fsdp_request probe     = {.ctx = ctx, .call = *call};
    const size_t       in_bytes  = extent_bytes(ctx, call, in);
    const size_t       out_bytes = extent_bytes(ctx, call, out);

    if ((in_bytes > 0 && call->in == NULL) || (out_bytes > 0 && call->out == NULL)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: the %s buffer is NULL; it must hold %zu bytes", call->name,
                          in_bytes > 0 && call->in == NULL ? "input" : "output",
                          in_bytes > 0 && call->in == NULL ? in_bytes : out_bytes);
    }
    if (out_bytes > 0 && call->out == FSDP_IN_PLACE) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: FSDP_IN_PLACE stands for an input; the output must be a buffer",
                          call->name);
    }
    if (in_bytes > 0 && call->in == FSDP_IN_PLACE && out == FSDPI_NOTHING) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: FSDP_IN_PLACE is for rank %d, the root; pass the input elsewhere",
                          call->name, call->root);
    }
    if (call->in != FSDP_IN_PLACE && in_bytes > 0 && out_bytes > 0 &&
        overlap(call->in, in_bytes, call->out, out_bytes) && !overlap_is_meant(&probe, in, out)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG,
                          "%s: input (%p, %zu bytes) and output (%p, %zu bytes) overlap; use separate "
                          "buffers or FSDP_IN_PLACE",
                          call->name, call->in, in_bytes, call->out, out_bytes);
    }
    FSDP_TRY(check_host_memory(ctx, call, call->in, in_bytes));
    return check_host_memory(ctx, call, call->out, out_bytes);
}

static fsdp_status check_arguments(fsdp_context *ctx, const fsdpi_call *call, fsdpi_extent in, fsdpi_extent out)
{
    FSDP_TRY(check_values(ctx, call));
    return check_buffers(ctx, call, in, out);
}

fsdp_status fsdpi_issue_checked(fsdp_context *ctx, const fsdpi_call *call, const fsdpi_algorithm *algorithm,
                                fsdpi_extent in, fsdpi_extent out, fsdp_status status, fsdp_request **request)
{
    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_init", call->name);
    }
    if (request == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: the place for the request is NULL", call->name);
    }
    *request = NULL;
    if (status == FSDP_OK && call->has_data) {
        status = check_arguments(ctx, call, in, out);
    }
    return fsdpi_issue(ctx, call, algorithm, status, request);
}
