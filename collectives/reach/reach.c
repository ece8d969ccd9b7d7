#include "collectives/reach/reach.h"

#include "collectives/arguments/slices.h"
#include "collectives/reach/mover.h"
#include "lib/context/context.h"
#include "lib/node/peers.h"

/* ---- saying where -------------------------------------------------------------------------------------------------- */

static bool is_reached(const fsdp_context *ctx, const fsdpi_buffer *buffer)
{
    return buffer->kind != FSDP_BUFFER_DEVICE || ctx->gpu.shares;
}

/* True where the buffer is symmetric; nothing at all is so too. */
static bool place_of(fsdp_context *ctx, const void *memory, size_t bytes, uint64_t *where, uint32_t *number,
                     bool *shared)
{
    const fsdpi_buffer *buffer = bytes > 0 ? fsdpi_buffer_of(&ctx->buffers, memory, bytes) : NULL;

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
    fsdp_context     *ctx   = request->ctx;
    const fsdpi_call *call  = &request->call;
    unsigned          flags = FSDPI_FLAG_PLACES;
    bool              in_shared, out_shared;

    const bool in  = place_of(ctx, call->in, call->in_bytes, &letter->at.in, &letter->at.in_buffer, &in_shared);
    const bool out = place_of(ctx, call->out, call->out_bytes, &letter->at.out, &letter->at.out_buffer, &out_shared);
    flags |= in && out ? FSDPI_FLAG_SYMMETRIC : 0;
    flags |= call->on_device ? FSDPI_FLAG_DEVICE : 0;
    flags |= out_shared ? FSDPI_FLAG_SHARED : 0;
    flags |= !fsdpi_overlap(call->in, call->in_bytes, call->out, call->out_bytes) ? FSDPI_FLAG_SEPARATE : 0;
    return flags;
}

bool fsdpi_places_are_open(fsdp_request *request, const fsdpi_letter *letter)
{
    const fsdpi_call *call  = &request->call;
    fsdpi_peers      *peers = &request->ctx->peers;

    return (letter->at.in_buffer != 0 || fsdpi_peers_may_read(peers, call->in, call->in_bytes)) &&
           (letter->at.out_buffer != 0 || fsdpi_peers_may_read(peers, call->out, call->out_bytes));
}

/* ---- reaching ---------------------------------------------------------------------------------------------------- */

unsigned char *fsdpi_peer(const fsdp_request *request, int position, fsdpi_side side)
{
    fsdp_context          *ctx    = request->ctx;
    const fsdpi_addresses *at     = &ctx->addresses[position];
    const uint32_t         number = side == FSDPI_INPUT ? at->in_buffer : at->out_buffer;

    if (position == ctx->nodes.position) {
        return side == FSDPI_INPUT ? (unsigned char *)(uintptr_t)request->call.in : request->call.out;
    }
    return number != 0 ? fsdpi_buffer_at(&ctx->buffers, number, position, side == FSDPI_INPUT ? at->in : at->out)
                       : NULL;
}

fsdp_status fsdpi_fetch(fsdp_request *request, int position, fsdpi_side side, size_t offset, void *to, size_t bytes)
{
    const unsigned char   *peer = fsdpi_peer(request, position, side);
    const fsdpi_addresses *at   = &request->ctx->addresses[position];

    if (peer != NULL) {
        fsdpi_mover_of(request)->copy(request, to, peer + offset, bytes);
        return FSDP_OK;
    }
    return fsdpi_peer_read(&request->ctx->peers, position, (side == FSDPI_INPUT ? at->in : at->out) + offset, to,
                           bytes);
}
