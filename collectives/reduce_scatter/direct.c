#include "collectives/reduce_scatter/direct.h"

#include "collectives/arguments.h"
#include "lib/context.h"

/* ELEMENTS per rank and round. */
static size_t piece_count(const fsdp_request *request)
{
    const fsdp_context *ctx   = request->ctx;
    const size_t        peers = ctx->size > 1 ? (size_t)ctx->size - 1 : 1;

    return (size_t)ctx->config.staging_bytes / peers / fsdp_dtype_size(request->call.dtype);
}

/* The part of a rank's slice that a round is about. */
static fsdpi_slice piece_of(const fsdp_request *request, int rank, size_t round)
{
    const fsdpi_slice slice = fsdpi_slice_of(request, rank);
    const size_t      piece = piece_count(request);
    const size_t      skip  = piece * round < slice.count ? piece * round : slice.count;
    const size_t      left  = slice.count - skip;

    return (fsdpi_slice){.begin = slice.begin + skip, .count = left < piece ? left : piece};
}

/* Where the piece of the n-th other rank is received. */
static unsigned char *staged(const fsdp_request *request, size_t n)
{
    return request->ctx->staging + n * piece_count(request) * fsdp_dtype_size(request->call.dtype);
}

fsdp_status fsdpi_reduce_scatter_direct_prepare(fsdp_request *request)
{
    const size_t largest = fsdpi_largest_slice(request);
    const size_t piece   = piece_count(request);

    request->rounds = largest / piece + (largest % piece != 0);
    return FSDP_OK;
}

fsdp_status fsdpi_reduce_scatter_direct_post(fsdp_request *request, size_t round)
{
    const size_t         width = fsdp_dtype_size(request->call.dtype);
    const unsigned char *in    = fsdpi_input_of(&request->call);
    const int            me    = request->ctx->rank;
    const fsdpi_slice    mine  = piece_of(request, me, round);
    size_t               n     = 0;

    for (int peer = 0; peer < request->ctx->size; peer++) {
        if (peer != me) {
            FSDP_TRY(fsdpi_post_receive(request, staged(request, n++), mine.count * width, peer));
        }
    }
    for (int peer = 0; peer < request->ctx->size; peer++) {
        const fsdpi_slice theirs = piece_of(request, peer, round);
        if (peer != me) {
            FSDP_TRY(fsdpi_post_send(request, in + theirs.begin * width, theirs.count * width, peer));
        }
    }
    return FSDP_OK;
}

void fsdpi_reduce_scatter_direct_finish(fsdp_request *request, size_t round, void *slice)
{
    const fsdp_context *ctx   = request->ctx;
    const fsdpi_call   *call  = &request->call;
    const size_t        width = fsdp_dtype_size(call->dtype);
    const fsdpi_slice   mine  = piece_of(request, ctx->rank, round);
    const size_t        skip  = mine.begin - fsdpi_slice_of(request, ctx->rank).begin;
    size_t              n     = 0;

    if (mine.count == 0) {
        return;
    }
    for (int r = 0; r < ctx->size; r++) {
        ctx->operands[r] = r == ctx->rank ? fsdpi_input_of(call) + mine.begin * width : staged(request, n++);
    }
    ctx->kernels->reduce((unsigned char *)slice + skip * width, ctx->operands, (size_t)ctx->size, mine.count,
                         call->dtype, call->op);
}

/*
 * In place the result belongs at the beginning of the buffer, where slices of other ranks still wait to be sent: it is
 * reduced into this rank's own slice, which is sent to nobody, and moved when all rounds are over.
 */
static void finish(fsdp_request *request, size_t round)
{
    const fsdpi_call *call  = &request->call;
    const size_t      width = fsdp_dtype_size(call->dtype);
    const fsdpi_slice mine  = fsdpi_slice_of(request, request->ctx->rank);
    unsigned char    *own   = (unsigned char *)call->out;

    if (call->in != FSDP_IN_PLACE) {
        fsdpi_reduce_scatter_direct_finish(request, round, own);
        return;
    }
    own = own != NULL ? own + mine.begin * width : NULL;
    fsdpi_reduce_scatter_direct_finish(request, round, own);
    if (round + 1 == request->rounds) {
        request->ctx->device->copy(call->out, own, mine.count * width);
    }
}

const fsdpi_algorithm fsdpi_reduce_scatter_direct = {.name    = "direct",
                                                     .prepare = fsdpi_reduce_scatter_direct_prepare,
                                                     .post    = fsdpi_reduce_scatter_direct_post,
                                                     .finish  = finish};
