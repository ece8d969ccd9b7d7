#include "collectives/rails/layout.h"

#include <string.h>

#include "collectives/rails/chunks.h"
#include "collectives/rails/ops.h"
#include "collectives/rails/route.h"
#include "lib/context/context.h"
#include "lib/sync/messages.h"

/* The rank of a node that deals with a part whose owner is on another node. */
static int dealer(const fsdpi_nodes *nodes, int node, int part)
{
    return fsdpi_rank_at(nodes, node, nodes->position_of[part] % fsdpi_node_size(nodes, node));
}

int fsdpi_rails_holder(const fsdpi_nodes *nodes, int node, int part)
{
    return nodes->node_of[part] == node ? part : dealer(nodes, node, part);
}

/* Parts of one node that a rank deals with are at least as many positions apart as the smallest node has ranks. */
static size_t dealt_with_at_most(const fsdpi_nodes *nodes)
{
    return ((size_t)nodes->largest + (size_t)nodes->smallest - 1) / (size_t)nodes->smallest;
}

bool fsdpi_rails_can_go_around(const fsdp_context *ctx)
{
    return (size_t)ctx->nodes.count * dealt_with_at_most(&ctx->nodes) <= (size_t)ctx->rails.n_tags;
}

int fsdpi_rails_tag_of_part(const fsdp_context *ctx, int part)
{
    const fsdpi_nodes *nodes = &ctx->nodes;
    const size_t       turn  = (size_t)nodes->position_of[part] / (size_t)nodes->smallest;
    const size_t       index = (size_t)nodes->node_of[part] * dealt_with_at_most(nodes) + turn;

    return FSDPI_TAG_PARTS + (int)(index % (size_t)ctx->rails.n_tags);
}

static int node_after(const fsdpi_nodes *nodes, int k)
{
    return (nodes->mine + k + nodes->count) % nodes->count;
}

static void add(fsdp_request *request, bool sends, int peer, int part, bool partial)
{
    fsdpi_rails      *rails = &request->ctx->rails;
    const fsdpi_slice slice = fsdpi_slice_of(request, part);
    const bool computed = partial && (!sends || request->ctx->nodes.largest > 1); /* or comes from who computed it */

    if (slice.count == 0) {
        return;
    }
    fsdpi_transfer *t = sends ? &rails->sends[rails->n_sends++] : &rails->receives[rails->n_receives++];
    *t                = (fsdpi_transfer){.peer    = peer,
                                         .part    = part,
                                         .partial = partial,
                                         .places  = rails->n_places,
                                         .begin   = slice.begin,
                                         .count   = slice.count,
                                         .chunks  = fsdpi_rails_chunks(request, slice.count)};
    rails->n_places += computed || fsdpi_rails_ops_of(request)->stages(request) ? rails->depth : 0;
}

/* Each owner receives a partial result from every other node. */
static void lay_out_partials(fsdp_request *request)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;
    const int          me    = request->ctx->rank;

    for (int k = 1; k < nodes->count; k++) {
        const int to = node_after(nodes, k), from = node_after(nodes, -k);

        for (int p = 0; p < fsdpi_node_size(nodes, to); p++) {
            const int owner = fsdpi_rank_at(nodes, to, p);
            if (dealer(nodes, nodes->mine, owner) == me) {
                add(request, true, owner, owner, true);
            }
        }
        add(request, false, dealer(nodes, from, me), me, true);
    }
}

/* Every other node receives each part from its owner. */
static void lay_out_parts(fsdp_request *request)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;
    const int          me    = request->ctx->rank;

    for (int k = 1; k < nodes->count; k++) {
        const int to = node_after(nodes, k), from = node_after(nodes, -k);

        add(request, true, dealer(nodes, to, me), me, false);
        for (int p = 0; p < fsdpi_node_size(nodes, from); p++) {
            const int owner = fsdpi_rank_at(nodes, from, p);
            if (dealer(nodes, nodes->mine, owner) == me) {
                add(request, false, owner, owner, false);
            }
        }
    }
}

/* What has been added last is sent when it has come by the last receive; of this rank's own part that does not matter. */
static void pass_on(fsdpi_rails *rails)
{
    if (rails->n_sends > 0) {
        rails->sends[rails->n_sends - 1].source = rails->n_receives > 0 ? rails->n_receives - 1 : 0;
    }
}

/* Every node receives each part from the node before it, and passes it on to the next, but for its owner's. */
static void lay_out_ring(fsdp_request *request)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;
    const int          me = request->ctx->rank, next = node_after(nodes, 1), last = node_after(nodes, -1);

    for (int k = 0; k < nodes->count; k++) {
        const int node = node_after(nodes, -k);

        for (int p = 0; p < fsdpi_node_size(nodes, node); p++) {
            const int part = fsdpi_rank_at(nodes, node, p);
            if (fsdpi_rails_holder(nodes, nodes->mine, part) != me) {
                continue;
            }
            if (k > 0) {
                add(request, false, fsdpi_rails_holder(nodes, last, part), part, false);
            }
            if (k + 1 < nodes->count) {
                add(request, true, dealer(nodes, next, part), part, false);
                pass_on(&request->ctx->rails);
            }
        }
    }
}

/* A block to and from each other rank, the nearest first. Those whose turns come after each other share places. */
static void lay_out_blocks(fsdp_request *request)
{
    const fsdp_context *ctx    = request->ctx;
    fsdpi_rails        *rails  = &request->ctx->rails;
    const size_t        window = rails->window;

    for (int k = 1; k < ctx->size; k++) {
        const int    to = (ctx->rank + k) % ctx->size, from = (ctx->rank - k + ctx->size) % ctx->size;
        const size_t turn = ((size_t)k - 1) % window;

        rails->n_places = rails->depth * turn;
        add(request, true, to, to, false);
        rails->n_places = rails->depth * (window + turn);
        add(request, false, from, from, false);
    }
}

void fsdpi_rails_lay_out(fsdp_request *request, unsigned route)
{
    fsdp_context *ctx   = request->ctx;
    fsdpi_rails  *rails = &ctx->rails;

    rails->route   = route;
    rails->n_sends = rails->n_receives = 0;
    rails->n_messages                  = 0;
    rails->n_places                    = 0;
    rails->n_in_turns                  = 0;
    rails->is_still                    = false;
    rails->n_working                   = 0;
    rails->turn = rails->in_turn = rails->leaving = 0;
    rails->reducing = rails->reduced = rails->own_copied = 0;
    fsdpi_rails_size_chunks(request, route);
    rails->chunks = fsdpi_rails_chunks(request, fsdpi_slice_of(request, ctx->rank).count);
    memset(rails->copied, 0, (size_t)ctx->size * sizeof *rails->copied);
    if ((route & FSDPI_REDUCES) != 0) {
        lay_out_partials(request);
        rails->n_in_turns = ctx->nodes.largest == ctx->nodes.smallest ? rails->n_sends : 0;
    }
    if ((route & FSDPI_EXCHANGES) != 0) {
        lay_out_blocks(request);
    }
    if ((route & FSDPI_AROUND) != 0) {
        lay_out_ring(request);
    } else if ((route & FSDPI_GATHERS) != 0) {
        lay_out_parts(request);
    }
}
