#include "collectives/rails/chunks.h"

#include <stdint.h>

#include "collectives/rails/ops.h"
#include "collectives/rails/route.h"
#include "lib/context/context.h"

/*
 * Transfers whose chunks may be in staging memory at once on any rank, whichever it has. Where every rank is a node, what it
 * sends is in its input.
 */
static size_t staged_at_most(const fsdpi_nodes *nodes, unsigned route, bool stages)
{
    const size_t many  = (size_t)((nodes->largest + nodes->smallest - 1) / nodes->smallest);
    const size_t parts = (route & FSDPI_AROUND) != 0 ? 2 * many : 1 + many;
    const size_t sends = nodes->largest > 1 || stages ? many : 0;
    size_t       each  = (route & FSDPI_REDUCES) != 0 ? 1 + sends : 0; /* for each other node */

    each += (route & FSDPI_GATHERS) != 0 && stages ? parts : 0;
    return each * (size_t)(nodes->count - 1);
}

/* So many blocks at once, each way, that chunks need not be shorter than they should be, but one at least. */
static size_t window_of(const fsdp_request *request)
{
    const size_t wanted = fsdpi_rails_ops_of(request)->wanted_bytes(request),
                 block  = fsdpi_largest_slice(request) * request->call.width;
    const size_t chunk = block < wanted ? block : wanted, others = (size_t)request->ctx->size - 1;
    const size_t room = request->ctx->box.rest_bytes / (2 * FSDPI_RAILS_DEPTH * (chunk > 0 ? chunk : 1));

    return room < 1 ? 1 : room < others ? room : others;
}

static size_t staged(const fsdp_request *request, unsigned route)
{
    const fsdp_context *ctx    = request->ctx;
    const bool          stages = fsdpi_rails_ops_of(request)->stages(request);

    if ((route & FSDPI_EXCHANGES) != 0) {
        return stages ? 2 * ctx->rails.window : 0;
    }
    return staged_at_most(&ctx->nodes, route, stages);
}

/* BYTES of a chunk that staging memory has room for, so many of each transfer at once, and one that is being reduced. */
static size_t room_bytes(const fsdp_request *request, unsigned route, size_t depth)
{
    const size_t places = depth * staged(request, route);

    return places > 0 ? fsdpi_rails_ops_of(request)->room_bytes(request, places + 1) : SIZE_MAX;
}

/*
 * Many nodes leave little room for each. Then fewer chunks of a transfer are under way, so that they need not be so short: one,
 * if that is all there is of it; else two, so that one can come while the other is reduced.
 */
static size_t depth_of(const fsdp_request *request, unsigned route, size_t wanted)
{
    const size_t part = fsdpi_largest_slice(request) * request->call.width, whole = part < wanted ? part : wanted;

    if (room_bytes(request, route, FSDPI_RAILS_DEPTH) >= whole) {
        return FSDPI_RAILS_DEPTH;
    }
    return room_bytes(request, route, 2) < part && room_bytes(request, route, 1) >= part ? 1 : 2;
}

void fsdpi_rails_size_chunks(fsdp_request *request, unsigned route)
{
    fsdpi_rails *rails = &request->ctx->rails;
    const size_t width = request->call.width, longest = (size_t)request->ctx->config.message_bytes;
    size_t       bytes = fsdpi_rails_ops_of(request)->wanted_bytes(request);

    rails->window = (route & FSDPI_EXCHANGES) != 0 ? window_of(request) : 0;
    rails->depth  = depth_of(request, route, bytes);

    const size_t room = room_bytes(request, route, rails->depth);
    bytes             = bytes < longest ? bytes : longest;
    bytes             = bytes < room ? bytes : room;
    bytes             = bytes / FSDPI_LINE > 0 ? bytes / FSDPI_LINE * FSDPI_LINE : bytes;
    rails->chunk      = bytes / width > 0 ? bytes / width : 1;
}

size_t fsdpi_rails_chunks(const fsdp_request *request, size_t count)
{
    const size_t chunk = request->ctx->rails.chunk;

    return count / chunk + (count % chunk != 0);
}

fsdpi_slice fsdpi_rails_chunk_of(const fsdp_request *request, size_t begin, size_t count, size_t number)
{
    const size_t chunk = request->ctx->rails.chunk;
    const size_t skip  = number * chunk;

    return (fsdpi_slice){.begin = begin + skip, .count = count - skip < chunk ? count - skip : chunk};
}

bool fsdpi_rails_fit(const fsdp_context *ctx)
{
    const size_t places = 2 * staged_at_most(&ctx->nodes, FSDPI_REDUCES | FSDPI_GATHERS | FSDPI_AROUND, true) + 1;

    return ctx->box.rest_bytes / places >= sizeof(double);
}
