/* Moves and reduces with the kernels of the host, at once. */
#include <string.h>

#include "collectives/arguments/slices.h"
#include "collectives/reach/mover.h"
#include "lib/context/context.h"

enum { LEAST_BYTES = 16 << 10 }; /* of input and output, for which it pays to ask */

/* Whether the input is one of the last few, and caches may hold it; remembers it in place of the oldest. */
static bool has_just_been_read(fsdp_request *request)
{
    fsdpi_read *reads = request->ctx->rails.reads, *place = reads;

    for (int i = 0; i < FSDPI_RECENT_READS && place->input != request->call.in; i++) {
        place = reads[i].input == request->call.in || reads[i].at < place->at ? &reads[i] : place;
    }
    const bool just = fsdpi_is_recent(place, request->call.in);

    *place = fsdpi_read_now(request->call.in);
    return just;
}

void fsdpi_note_memory(fsdp_request *request)
{
    request->is_cold = request->call.in_bytes + request->call.out_bytes >= LEAST_BYTES && !has_just_been_read(request);
}

static bool is_in_place(const fsdpi_call *call)
{
    return fsdpi_overlap(call->in, call->in_bytes, call->out, call->out_bytes);
}

/* Whether the result is written over what has just been read: of a gather, most is not. */
static bool is_rewritten(const fsdpi_call *call)
{
    return is_in_place(call) && call->in_bytes >= call->out_bytes;
}

/*
 * However large the last-level cache: one that reports more for each rank serves other cores too, which a virtual machine does not
 * show. With 105 MiB reported to two cores, 16 MiB went 1.4 to 1.7 times as fast past the caches. Where it is always faster to go past
 * them, it was so even of memory that the last call had used, from 4 MiB on.
 */
static bool is_large(const fsdp_request *request)
{
    enum { MOST_CACHE_OF_A_RANK = 8 << 20, MOST_WHERE_PAST_IS_FASTER = 4 << 20 };

    const fsdp_context *ctx    = request->ctx;
    const fsdpi_call   *call   = &request->call;
    const size_t        larger = call->in_bytes > call->out_bytes ? call->in_bytes : call->out_bytes;
    const size_t        own    = is_in_place(call) ? larger : call->in_bytes + call->out_bytes;
    const size_t        share  = ctx->machine.cache_bytes / (size_t)ctx->nodes.size;
    const size_t        most   = fsdpi_kernels_favour_past() ? MOST_WHERE_PAST_IS_FASTER : MOST_CACHE_OF_A_RANK;

    return own > (share < most ? share : most);
}

/* What is reduced in halves is sent on from the caches. */
bool fsdpi_goes_past(const fsdp_request *request)
{
    const fsdpi_call *call = &request->call;

    return call->in_bytes + call->out_bytes >= LEAST_BYTES &&
           (is_large(request) ||
            (fsdpi_kernels_favour_past() && request->is_cold && !request->in_halves && !is_rewritten(call)));
}

static void move(fsdp_request *request, void *to, const void *from, size_t bytes)
{
    request->ctx->kernels->copy(to, from, bytes);
}

static bool is_placed_past(const fsdp_request *request)
{
    return fsdpi_kernels_favour_past() && fsdpi_goes_past(request);
}

static void place(fsdp_request *request, void *to, const void *from, size_t bytes)
{
    if (is_placed_past(request)) {
        request->ctx->kernels->stream(to, from, bytes);
    } else {
        request->ctx->kernels->copy(to, from, bytes);
    }
}

static void copy(fsdp_request *request, void *to, const void *from, size_t bytes)
{
    if (to == from || bytes == 0) {
        return;
    }
    if (fsdpi_goes_past(request)) {
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

static void reduce_past(fsdp_request *request, void *to, size_t n, size_t count, fsdp_redop op, size_t divisor)
{
    const fsdp_context *ctx = request->ctx;

    ctx->kernels->reduce_into(&to, 1, ctx->operands, n, count, request->call.dtype, op, divisor, 1);
}

static void reduce_result(fsdp_request *request, void *to, size_t n, size_t count, fsdp_redop op, size_t divisor)
{
    (fsdpi_goes_past(request) ? reduce_past : reduce)(request, to, n, count, op, divisor);
}

static void place_reduced(fsdp_request *request, void *to, size_t n, size_t count, fsdp_redop op, size_t divisor)
{
    (is_placed_past(request) && !is_in_place(&request->call) ? reduce_past : reduce)(request, to, n, count, op,
                                                                                     divisor);
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
                                      .place         = place,
                                      .copy          = copy,
                                      .settle        = settle,
                                      .reduce        = reduce,
                                      .reduce_result = reduce_result,
                                      .place_reduced = place_reduced,
                                      .widen         = widen,
                                      .narrow        = narrow,
                                      .reduce_wide   = reduce_wide,
                                      .in_mailbox    = in_mailbox};
