#include "collectives/reach/pieces.h"

#include "collectives/reach/mover.h"
#include "collectives/reach/reach.h"
#include "lib/context/context.h"

/* BYTES of a piece, and how many of them one step works on. */
enum { PIECE_BYTES = 256 << 10, PIECES_PER_STEP = 2 };

size_t fsdpi_piece(const fsdp_request *request)
{
    const fsdp_context *ctx   = request->ctx;
    const size_t        peers = ctx->nodes.largest > 1 ? (size_t)ctx->nodes.largest - 1 : 1;
    const size_t        room =
        request->lane->box.rest_bytes / 2 / peers; /* the other half is for what comes from other nodes */
    const size_t bytes = room < PIECE_BYTES ? room : PIECE_BYTES;
    const size_t width = request->call.width;

    return bytes / width > 0 ? bytes / width : 1;
}

fsdpi_slice fsdpi_next_piece(const fsdp_request *request, fsdpi_slice part, size_t most)
{
    const size_t left = part.count - request->at;
    const size_t n    = left < most ? left : most;

    return (fsdpi_slice){.begin = part.begin + ((request->number & 1) != 0 ? request->at : left - n), .count = n};
}

/* Sets ctx->operands to the inputs of the node from an element on; copies those that cannot be addressed. */
static fsdp_status gather_operands(fsdp_request *request, size_t begin, size_t count)
{
    fsdp_context  *ctx   = request->ctx;
    const size_t   width = request->call.width;
    unsigned char *scratch =
        fsdpi_rest_of(&request->lane->box, ctx->nodes.position) + request->lane->box.rest_bytes / 2;

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

fsdp_status fsdpi_reduce_inputs(fsdp_request *request, size_t begin, size_t count, fsdp_redop op, size_t divisor,
                                unsigned char *to)
{
    FSDP_TRY(gather_operands(request, begin, count));
    fsdpi_mover_of(request)->reduce(request, to, (size_t)request->ctx->nodes.size, count, op, divisor);
    return FSDP_OK;
}

/* In place the results go where operands have just been read, into lines that are in the cache already. */
fsdp_status fsdpi_reduce_inputs_to(fsdp_request *request, size_t begin, size_t count, unsigned char *const *to,
                                   int n_to)
{
    const fsdp_context *ctx      = request->ctx;
    const fsdpi_call   *call     = &request->call;
    const bool          in_place = fsdpi_overlap(call->in, call->in_bytes, call->out, call->out_bytes);
    const size_t        n_past   = fsdpi_goes_past(request) && !in_place ? (size_t)n_to : 0;

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

void fsdpi_settle(fsdp_request *request)
{
    const fsdpi_call    *call  = &request->call;
    const unsigned char *own   = fsdpi_own_result(request);
    const size_t         bytes = fsdpi_slice_of(request, request->ctx->rank).count * call->width;

    if (call->division != FSDPI_DIVISION_SPLIT && own != call->out) {
        fsdpi_mover_of(request)->settle(request, call->out, own, bytes);
    }
}
