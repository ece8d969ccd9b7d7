#include "collectives/rails/copies.h"

#include <stdint.h>

#include "collectives/rails/chunks.h"
#include "collectives/rails/ops.h"
#include "collectives/rails/places.h"
#include "collectives/rails/route.h"
#include "collectives/rails/schedule.h"
#include "collectives/reach/mover.h"
#include "collectives/reach/reach.h"
#include "lib/context/context.h"

static fsdp_status fetch(fsdp_request *request, int position, fsdpi_side side, size_t from, fsdpi_slice c)
{
    const size_t width = request->call.width;

    fsdpi_rails_ops_of(request)->turn(request, FSDPI_COMING);
    return fsdpi_fetch(request, position, side, from * width, (unsigned char *)request->call.out + c.begin * width,
                       c.count * width);
}

/* The next chunk of a peer's own part: of its input, or, where that is reduced first, once it is final. */
static fsdp_status copy_own(fsdp_request *request, int position, bool *moved, bool *done)
{
    fsdp_context     *ctx      = request->ctx;
    const bool        is_input = (ctx->rails.route & FSDPI_REDUCES) == 0;
    fsdpi_copied     *copied   = &ctx->rails.copied[position];
    const fsdpi_slice part     = fsdpi_rails_part(request, fsdpi_rank_at(&ctx->nodes, ctx->nodes.mine, position));

    if (copied->own == fsdpi_rails_chunks(request, part.count)) {
        return FSDP_OK;
    }
    *done = false;
    if (!is_input && fsdpi_mailbox_landed(&request->lane->box, position, FSDPI_LANDED_FINAL) <= copied->own) {
        return FSDP_OK;
    }
    const fsdpi_slice c = fsdpi_rails_chunk_of(request, part.begin, part.count, copied->own);
    copied->own++;
    *moved = true;
    return fetch(request, position, is_input ? FSDPI_INPUT : FSDPI_OUTPUT, is_input ? c.begin - part.begin : c.begin,
                 c);
}

/* The next chunk that has come to a peer from another node: they come in the order of its schedule. */
static fsdp_status copy_come(fsdp_request *request, int position, bool *moved, bool *done)
{
    fsdp_context    *ctx    = request->ctx;
    fsdpi_copied    *copied = &ctx->rails.copied[position];
    const fsdpi_seat seat   = fsdpi_rails_seat(&ctx->nodes, position);
    fsdpi_parcel     parcel;

    if (copied->named) {
        return FSDP_OK;
    }
    const bool   is_here = fsdpi_mailbox_landed(&request->lane->box, position, FSDPI_LANDED_HERE) > copied->come;
    fsdpi_cursor next    = copied->next;
    copied->named        = !fsdpi_rails_next(request, &seat, FSDPI_PARTS_IN, &next, &parcel);
    *done                = *done && copied->named;
    if (copied->named || !is_here) {
        return FSDP_OK;
    }
    copied->next = next;
    copied->come++;
    *moved = true;
    return fetch(request, position, FSDPI_OUTPUT, parcel.begin, (fsdpi_slice){parcel.begin, parcel.count});
}

/*
 * At once on a GPU, whose streams go on meanwhile; on the host a piece at a time, so that messages are looked after. On AMD's, the C
 * library copies 1 MiB and more in another way, which takes a fifth longer.
 */
static size_t own_piece(const fsdp_request *request, size_t left)
{
    const size_t step  = FSDPI_STEP_BYTES / request->call.width;
    const size_t chunk = request->ctx->rails.chunk, piece = chunk < step ? chunk : step;

    return request->call.on_device || left < piece ? left : piece;
}

/* Whether there is still something to come that this rank's own part should be copied behind. */
static bool is_early(const fsdpi_rails *rails)
{
    const fsdpi_stream *in = &rails->streams[FSDPI_PARTS_IN];

    return rails->copies_last && !(in->named && in->ended == in->taken);
}

void fsdpi_rails_copy_own_part(fsdp_request *request, bool *moved, bool *done)
{
    fsdpi_rails      *rails = &request->ctx->rails;
    const fsdpi_slice mine  = fsdpi_rails_part(request, request->ctx->rank);
    const size_t      width = request->call.width, at = rails->own_copied;
    const size_t      skip = (rails->route & FSDPI_EXCHANGES) != 0 ? mine.begin : 0; /* the input is whole */

    if ((rails->route & FSDPI_REDUCES) != 0 || at == mine.count) {
        return;
    }
    if ((*moved && fsdpi_rails_pulls(request)) || is_early(rails)) { /* a chunk brought is enough for one look */
        *done = false;
        return;
    }
    unsigned char *const       to    = (unsigned char *)request->call.out + (mine.begin + at) * width;
    const unsigned char *const from  = (const unsigned char *)request->call.in + (skip + at) * width;
    const size_t               piece = to == from ? mine.count - at : own_piece(request, mine.count - at);

    fsdpi_rails_ops_of(request)->turn(request, FSDPI_COMING);
    if (to != from) {
        fsdpi_mover_of(request)->place(request, to, from, piece * width);
    }
    rails->own_copied += piece;
    *moved = true;
    *done  = *done && rails->own_copied == mine.count;
}

fsdp_status fsdpi_rails_copy_from_peers(fsdp_request *request, bool *moved, bool *done)
{
    const fsdp_context *ctx = request->ctx;

    if ((ctx->rails.route & FSDPI_GATHERS) == 0 || ctx->nodes.size == 1 || (request->flags & FSDPI_FLAG_SHARED) != 0) {
        return FSDP_OK;
    }
    for (int p = 0; p < ctx->nodes.size; p++) {
        if (p != ctx->nodes.position) {
            FSDP_TRY(copy_own(request, p, moved, done));
            FSDP_TRY(copy_come(request, p, moved, done));
        }
    }
    return FSDP_OK;
}
