#include "collectives/reach.h"

#include <string.h>

#include "collectives/arguments.h"
#include "collectives/rails_layout.h"
#include "lib/agreement.h"
#include "lib/context.h"
#include "lib/device/gpu_request.h"
#include "lib/peers.h"

/* BYTES of a piece, and how many of them one step works on. */
enum { PIECE_BYTES = 256 << 10, PIECES_PER_STEP = 8 };

/*
 * However large the last-level cache: one that reports more for each rank serves other cores too, which a virtual machine
 * does not show. With 105 MiB reported to two cores, 16 MiB went 1.4 to 1.7 times as fast past the caches.
 */
enum { MOST_CACHE_OF_A_RANK = 8 << 20 };

/* ---- saying where -------------------------------------------------------------------------------------------------- */

static bool is_reached(const fsdp_context *ctx, const fsdpi_buffer *buffer)
{
    return buffer->kind != FSDP_BUFFER_DEVICE || ctx->gpu.shares;
}

/* True where the buffer is symmetric; nothing at all is so too. */
static bool place_of(const fsdp_context *ctx, const void *memory, size_t bytes, uint64_t *where, uint32_t *number,
                     bool *shared)
{
    const fsdpi_buffer *buffer = bytes > 0 ? fsdpi_buffer_of(ctx, memory, bytes) : NULL;

    *where  = (uint64_t)(uintptr_t)memory;
    *number = 0;
    *shared = false;
    buffer  = buffer != NULL && !buffer->freed && is_reached(ctx, buffer) ? buffer : NULL;
    if (buffer != NULL) {
        *where  = (uint64_t)((const unsigned char *)memory - buffer->base);
        *number = buffer->number;
        *shared = buffer->kind == FSDP_BUFFER_PER_NODE;
    }
    return bytes == 0 || buffer != NULL;
}

unsigned fsdpi_offer_places(fsdp_request *request, fsdpi_letter *letter)
{
    const fsdp_context *ctx   = request->ctx;
    const fsdpi_call   *call  = &request->call;
    unsigned            flags = FSDPI_FLAG_PLACES;
    bool                in_shared, out_shared;

    const bool in  = place_of(ctx, call->in, call->in_bytes, &letter->in, &letter->in_buffer, &in_shared);
    const bool out = place_of(ctx, call->out, call->out_bytes, &letter->out, &letter->out_buffer, &out_shared);
    flags |= in && out ? FSDPI_FLAG_SYMMETRIC : 0;
    flags |= call->on_device ? FSDPI_FLAG_DEVICE : 0;
    flags |= out_shared ? FSDPI_FLAG_SHARED : 0;
    flags |= !fsdpi_overlap(call->in, call->in_bytes, call->out, call->out_bytes) ? FSDPI_FLAG_SEPARATE : 0;
    return flags;
}

static unsigned able_on_device(const fsdp_context *ctx, bool symmetric)
{
    if (ctx->nodes.count == 1) {
        return symmetric ? 1U << FSDP_ALGO_DIRECT : 0;
    }
    return (symmetric || ctx->nodes.largest == 1) && fsdpi_rails_fit(ctx) ? 1U << FSDP_ALGO_RAILS | 1U << FSDP_ALGO_RING
                                                                          : 0;
}

unsigned fsdpi_able(const fsdp_request *request)
{
    const fsdp_context *ctx       = request->ctx;
    const bool          places    = (request->flags & FSDPI_FLAG_PLACES) != 0;
    const bool          symmetric = (request->flags & FSDPI_FLAG_SYMMETRIC) != 0;
    unsigned            able      = 1U << FSDP_ALGO_STAGED;

    if ((request->flags & FSDPI_FLAG_DEVICE) != 0) {
        return able | able_on_device(ctx, symmetric);
    }
    if (ctx->nodes.count == 1) {
        able |= places && symmetric ? 1U << FSDP_ALGO_DIRECT : 0;
        able |= places && ctx->reads_peers ? 1U << FSDP_ALGO_CMA : 0;
    } else if (places && (symmetric || ctx->reads_peers || ctx->nodes.largest == 1)) {
        able |= 1U << FSDP_ALGO_RAILS | 1U << FSDP_ALGO_RING;
    }
    return able;
}

/* ---- reaching ---------------------------------------------------------------------------------------------------- */

unsigned char *fsdpi_peer(const fsdp_request *request, int position, fsdpi_side side)
{
    const fsdp_context *ctx    = request->ctx;
    const fsdpi_letter *letter = fsdpi_letter_from(request, position);
    const uint32_t      number = side == FSDPI_INPUT ? letter->in_buffer : letter->out_buffer;

    if (position == ctx->nodes.position) {
        return side == FSDPI_INPUT ? (unsigned char *)(uintptr_t)request->call.in : request->call.out;
    }
    return number != 0 ? fsdpi_buffer_at(ctx, number, position, side == FSDPI_INPUT ? letter->in : letter->out) : NULL;
}

fsdp_status fsdpi_fetch(fsdp_request *request, int position, fsdpi_side side, size_t offset, void *to, size_t bytes)
{
    const unsigned char *peer   = fsdpi_peer(request, position, side);
    const fsdpi_letter  *letter = fsdpi_letter_from(request, position);

    if (peer != NULL) {
        fsdpi_copy(request, to, peer + offset, bytes);
        return FSDP_OK;
    }
    return fsdpi_peer_read(request->ctx, position, (side == FSDPI_INPUT ? letter->in : letter->out) + offset, to,
                           bytes);
}

void fsdpi_fetch_on_device(fsdp_request *request, int position, size_t offset, void *to, size_t bytes)
{
    const unsigned char *peer = fsdpi_peer(request, position, FSDPI_INPUT);

    if (bytes > 0) {
        fsdpi_gpu_move(request, to, peer + offset, bytes);
    }
}

void fsdpi_leave_on_device(fsdp_request *request)
{
    fsdpi_gpu_hear_done(request, request->number - 1); /* the letter that said where the buffers are */
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

static bool in_place(const fsdpi_call *call)
{
    return fsdpi_overlap(call->in, call->in_bytes, call->out, call->out_bytes);
}

bool fsdpi_is_large(const fsdp_request *request)
{
    const fsdp_context *ctx    = request->ctx;
    const fsdpi_call   *call   = &request->call;
    const size_t        larger = call->in_bytes > call->out_bytes ? call->in_bytes : call->out_bytes;
    const size_t        own    = in_place(call) ? larger : call->in_bytes + call->out_bytes;
    const size_t        share  = ctx->machine.cache_bytes / (size_t)ctx->nodes.size;

    return own > (share < MOST_CACHE_OF_A_RANK ? share : MOST_CACHE_OF_A_RANK);
}

fsdpi_slice fsdpi_next_piece(const fsdp_request *request, fsdpi_slice part, size_t most)
{
    const size_t left = part.count - request->at;
    const size_t n    = left < most ? left : most;

    return (fsdpi_slice){.begin = part.begin + ((request->number & 1) != 0 ? request->at : left - n), .count = n};
}

void fsdpi_copy(fsdp_request *request, void *to, const void *from, size_t bytes)
{
    if (to == from || bytes == 0) {
        return;
    }
    if (request->call.on_device) {
        fsdpi_gpu_move(request, to, from, bytes);
    } else if (fsdpi_is_large(request)) {
        request->ctx->kernels->stream(to, from, bytes);
    } else {
        memcpy(to, from, bytes);
    }
}

size_t fsdpi_piece(const fsdp_request *request)
{
    const fsdp_context *ctx   = request->ctx;
    const size_t        peers = ctx->nodes.largest > 1 ? (size_t)ctx->nodes.largest - 1 : 1;
    const size_t        room  = ctx->box.rest_bytes / 2 / peers; /* the other half is for what comes from other nodes */
    const size_t        bytes = room < PIECE_BYTES ? room : PIECE_BYTES;
    const size_t        width = request->call.width;

    return bytes / width > 0 ? bytes / width : 1;
}

/* Sets ctx->operands to the inputs of the node from an element on; copies those that cannot be addressed. */
static fsdp_status gather_operands(fsdp_request *request, size_t begin, size_t count)
{
    fsdp_context  *ctx     = request->ctx;
    const size_t   width   = request->call.width;
    unsigned char *scratch = fsdpi_rest_of(&ctx->box, ctx->nodes.position) + ctx->box.rest_bytes / 2;

    for (int p = 0; p < ctx->nodes.size; p++) {
        const unsigned char *peer = fsdpi_peer(request, p, FSDPI_INPUT);

        if (peer != NULL) {
            ctx->operands[p] = peer + begin * width;
            continue;
        }
        FSDP_TRY(fsdpi_fetch(request, p, FSDPI_INPUT, begin * width, scratch, count * width));
        ctx->operands[p] = scratch;
        scratch += count * width;
    }
    return FSDP_OK;
}

void fsdpi_reduce_operands(fsdp_request *request, void *to, size_t n, size_t count, fsdp_redop op, size_t divisor)
{
    const fsdp_context *ctx = request->ctx;

    if (request->call.on_device) {
        fsdpi_gpu_reduce_to(request, &to, 1, ctx->operands, n, count, op, divisor);
    } else {
        ctx->kernels->reduce(to, ctx->operands, n, count, request->call.dtype, op, divisor);
    }
}

fsdp_status fsdpi_reduce_inputs(fsdp_request *request, size_t begin, size_t count, fsdp_redop op, size_t divisor,
                                unsigned char *to)
{
    FSDP_TRY(gather_operands(request, begin, count));
    fsdpi_reduce_operands(request, to, (size_t)request->ctx->nodes.size, count, op, divisor);
    return FSDP_OK;
}

/* In place the results go where operands have just been read, into lines that are in the cache already. */
fsdp_status fsdpi_reduce_inputs_to(fsdp_request *request, size_t begin, size_t count, unsigned char *const *to,
                                   int n_to)
{
    const fsdp_context *ctx    = request->ctx;
    const fsdpi_call   *call   = &request->call;
    const size_t        n_past = fsdpi_is_large(request) && !in_place(call) ? (size_t)n_to : 0;

    FSDP_TRY(gather_operands(request, begin, count));
    ctx->kernels->reduce_into((void *const *)(const void *)to, (size_t)n_to, ctx->operands, (size_t)ctx->nodes.size,
                              count, call->dtype, call->op, (size_t)ctx->size, n_past);
    return FSDP_OK;
}

fsdp_status fsdpi_reduce_own_part(fsdp_request *request, bool *done)
{
    const fsdpi_slice mine  = fsdpi_slice_of(request, request->ctx->rank);
    const size_t      piece = fsdpi_piece(request);

    for (int i = 0; i < PIECES_PER_STEP && request->at < mine.count; i++) {
        const fsdpi_slice    next = fsdpi_next_piece(request, mine, piece);
        unsigned char *const to   = fsdpi_own_result(request) + (next.begin - mine.begin) * request->call.width;

        FSDP_TRY(fsdpi_reduce_inputs_to(request, next.begin, next.count, &to, 1));
        request->at += next.count;
    }
    *done = request->at >= mine.count;
    return FSDP_OK;
}
