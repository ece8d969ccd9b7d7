#include "collectives/rails/awaited.h"

#include "collectives/rails/chunks.h"
#include "collectives/rails/route.h"
#include "collectives/rails/schedule.h"
#include "lib/context/context.h"

static void add_peers(const fsdpi_stream *stream, fsdpi_rank_list *list)
{
    for (size_t n = stream->done; n < stream->posted; n++) {
        const fsdpi_parcel *parcel = &stream->parcels[n % stream->window];

        if (!parcel->complete) {
            fsdpi_rank_list_add(list, parcel->peer);
        }
    }
}

/* Whether what is to be copied next from a position of this node is not there yet. */
static bool is_awaited(const fsdp_request *request, int position)
{
    const fsdp_context *ctx     = request->ctx;
    const fsdpi_copied *copied  = &ctx->rails.copied[position];
    const fsdpi_slice   part    = fsdpi_rails_part(request, fsdpi_rank_at(&ctx->nodes, ctx->nodes.mine, position));
    const bool          reduces = (ctx->rails.route & FSDPI_REDUCES) != 0;

    if (reduces && copied->own < fsdpi_rails_chunks(request, part.count) &&
        fsdpi_mailbox_landed(&request->lane->box, position, FSDPI_LANDED_FINAL) <= copied->own) {
        return true;
    }
    return !copied->named && fsdpi_mailbox_landed(&request->lane->box, position, FSDPI_LANDED_HERE) <= copied->come;
}

void fsdpi_rails_awaited(const fsdp_request *request, fsdpi_rank_list *list)
{
    const fsdp_context *ctx   = request->ctx;
    const fsdpi_rails  *rails = &ctx->rails;

    if (request->stage == 0) {
        return; /* nothing is laid out */
    }
    for (int s = 0; s < FSDPI_STREAMS; s++) {
        add_peers(&rails->streams[s], list);
    }
    if ((rails->route & FSDPI_GATHERS) == 0 || (request->flags & FSDPI_FLAG_SHARED) != 0) {
        return;
    }
    for (int p = 0; p < ctx->nodes.size; p++) {
        if (p != ctx->nodes.position && is_awaited(request, p)) {
            fsdpi_rank_list_add(list, fsdpi_rank_at(&ctx->nodes, ctx->nodes.mine, p));
        }
    }
}
