#include "collectives/rails/awaited.h"

#include "collectives/rails/chunks.h"
#include "collectives/rails/layout.h"
#include "collectives/rails/route.h"
#include "lib/context/context.h"

static void add_peers(const fsdpi_transfer *transfers, size_t n, fsdpi_rank_list *list)
{
    for (size_t i = 0; i < n; i++) {
        if (transfers[i].done < transfers[i].posted) {
            fsdpi_rank_list_add(list, transfers[i].peer);
        }
    }
}

/* Of a part that is copied from who has it first on this node: whether the next chunk has not landed there. */
static bool has_not_landed(const fsdp_request *request, int part)
{
    const fsdp_context *ctx    = request->ctx;
    const size_t        number = ctx->rails.copied[part];
    const bool is_input        = ctx->nodes.node_of[part] == ctx->nodes.mine && (ctx->rails.route & FSDPI_REDUCES) == 0;

    return !is_input && number < fsdpi_rails_chunks(request, fsdpi_slice_of(request, part).count) &&
           fsdpi_mailbox_landed(&ctx->box, part) <= number;
}

static void add_holders(const fsdp_request *request, fsdpi_rank_list *list)
{
    const fsdp_context *ctx = request->ctx;

    for (int part = 0; part < ctx->size; part++) {
        const int holder = fsdpi_rails_holder(&ctx->nodes, ctx->nodes.mine, part);
        if (holder != ctx->rank && has_not_landed(request, part)) {
            fsdpi_rank_list_add(list, holder);
        }
    }
}

void fsdpi_rails_awaited(const fsdp_request *request, fsdpi_rank_list *list)
{
    const fsdp_context *ctx   = request->ctx;
    const fsdpi_rails  *rails = &ctx->rails;

    if (request->stage == 0) {
        return; /* nothing is laid out */
    }
    add_peers(rails->receives, rails->n_receives, list);
    add_peers(rails->sends, rails->n_sends, list);
    if ((rails->route & FSDPI_GATHERS) != 0 && ctx->nodes.size > 1 && (request->flags & FSDPI_FLAG_SHARED) == 0) {
        add_holders(request, list);
    }
}
