#include "collectives/rails/copies.h"

#include "collectives/rails/chunks.h"
#include "collectives/rails/layout.h"
#include "collectives/rails/ops.h"
#include "collectives/rails/route.h"
#include "collectives/reach/mover.h"
#include "collectives/reach/reach.h"
#include "lib/context/context.h"

/* Copies what has newly come of a part to a peer on this node. `done` is cleared while some is still to come. */
static fsdp_status copy_part(fsdp_request *request, unsigned route, int part, bool *moved, bool *done)
{
    fsdp_context     *ctx      = request->ctx;
    fsdpi_rails      *rails    = &ctx->rails;
    const int         position = ctx->nodes.position_of[fsdpi_rails_holder(&ctx->nodes, ctx->nodes.mine, part)];
    const fsdpi_slice slice    = fsdpi_slice_of(request, part);
    const size_t      chunks = fsdpi_rails_chunks(request, slice.count), width = request->call.width,
                 number = rails->copied[part];
    const bool is_input = ctx->nodes.node_of[part] == ctx->nodes.mine && (route & FSDPI_REDUCES) == 0;

    if (number == chunks) {
        return FSDP_OK;
    }
    *done = false;
    if (!is_input && fsdpi_mailbox_landed(&ctx->box, part) <= number) {
        return FSDP_OK;
    }
    const fsdpi_slice c = fsdpi_rails_chunk_of(request, slice.begin, slice.count, number);
    fsdpi_rails_ops_of(request)->turn(request, FSDPI_COMING);
    FSDP_TRY(fsdpi_fetch(request, position, is_input ? FSDPI_INPUT : FSDPI_OUTPUT,
                         (is_input ? c.begin - slice.begin : c.begin) * width,
                         (unsigned char *)request->call.out + c.begin * width, c.count * width));
    rails->copied[part]++;
    *moved = true;
    return FSDP_OK;
}

/* At once on a GPU, whose streams go on meanwhile; on the host a chunk at a time, so that messages are looked after. */
static size_t own_piece(const fsdp_request *request, size_t left)
{
    const size_t chunk = request->ctx->rails.chunk;

    return request->call.on_device || left < chunk ? left : chunk;
}

void fsdpi_rails_copy_own_part(fsdp_request *request, unsigned route, bool *moved, bool *done)
{
    fsdpi_rails      *rails = &request->ctx->rails;
    const fsdpi_slice mine  = fsdpi_slice_of(request, request->ctx->rank);
    const size_t      width = request->call.width, at = rails->own_copied;
    const size_t      skip = (route & FSDPI_EXCHANGES) != 0 ? mine.begin : 0; /* the input is whole */

    if ((route & FSDPI_REDUCES) != 0 || at == mine.count) {
        return;
    }
    unsigned char *const       to    = (unsigned char *)request->call.out + (mine.begin + at) * width;
    const unsigned char *const from  = (const unsigned char *)request->call.in + (skip + at) * width;
    const size_t               piece = to == from ? mine.count - at : own_piece(request, mine.count - at);

    fsdpi_rails_ops_of(request)->turn(request, FSDPI_COMING);
    fsdpi_mover_of(request)->copy(request, to, from, piece * width);
    rails->own_copied += piece;
    *moved = true;
    *done  = *done && rails->own_copied == mine.count;
}

fsdp_status fsdpi_rails_copy_from_peers(fsdp_request *request, unsigned route, bool *moved, bool *done)
{
    const fsdp_context *ctx = request->ctx;

    if ((route & FSDPI_GATHERS) == 0 || ctx->nodes.size == 1 || (request->flags & FSDPI_FLAG_SHARED) != 0) {
        return FSDP_OK;
    }
    for (int part = 0; part < ctx->size; part++) {
        if (fsdpi_rails_holder(&ctx->nodes, ctx->nodes.mine, part) != ctx->rank) {
            FSDP_TRY(copy_part(request, route, part, moved, done));
        }
    }
    return FSDP_OK;
}
