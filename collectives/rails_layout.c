#include "collectives/rails_layout.h"

#include <stdint.h>
#include <string.h>

#include "collectives/rails.h"
#include "collectives/reach.h"
#include "lib/context.h"

/*
 * BYTES of a chunk on the host: enough to be worth a message, few enough that the link never waits long for the first one.
 * On GPUs, how many chunks a part should have, within these bounds.
 */
enum { CHUNK_BYTES = 48 << 10, DEVICE_CHUNKS = 16, DEVICE_CHUNK_LEAST = 64 << 10, DEVICE_CHUNK_MOST = 1 << 20 };

/* ---- who sends what to whom -------------------------------------------------------------------------------------- */

/* The rank of a node that deals with a part whose owner is on another node. */
static int dealer(const fsdpi_nodes *nodes, int node, int part)
{
    return fsdpi_rank_at(nodes, node, nodes->position_of[part] % fsdpi_node_size(nodes, node));
}

int fsdpi_rails_holder(const fsdpi_nodes *nodes, int node, int part)
{
    return nodes->node_of[part] == node ? part : dealer(nodes, node, part);
}

static int node_after(const fsdpi_nodes *nodes, int k)
{
    return (nodes->mine + k + nodes->count) % nodes->count;
}

size_t fsdpi_rails_chunks(const fsdp_request *request, size_t count)
{
    const size_t chunk = request->ctx->rails.chunk;

    return count / chunk + (count % chunk != 0);
}

static void add(fsdp_request *request, bool sends, int peer, int part, bool partial)
{
    fsdpi_rails      *rails = &request->ctx->rails;
    const fsdpi_slice slice = fsdpi_slice_of(request, part);

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
    rails->n_places += partial || fsdpi_rails_stages(request) ? FSDPI_RAILS_DEPTH : 0;
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

        rails->n_places = FSDPI_RAILS_DEPTH * turn;
        add(request, true, to, to, false);
        rails->n_places = FSDPI_RAILS_DEPTH * (window + turn);
        add(request, false, from, from, false);
    }
}

/* ---- how large a chunk is: the same on all ranks ------------------------------------------------------------------ */

/* Chunks that may be in staging memory at once on any rank, whichever transfers it has; and one that is being reduced. */
static size_t places_at_most(const fsdpi_nodes *nodes, unsigned route, bool stages)
{
    const size_t many  = (size_t)((nodes->largest + nodes->smallest - 1) / nodes->smallest);
    const size_t parts = (route & FSDPI_AROUND) != 0 ? 2 * many : 1 + many;
    size_t       each  = (route & FSDPI_REDUCES) != 0 ? 1 + many : 0; /* for each other node */

    each += (route & FSDPI_GATHERS) != 0 && stages ? parts : 0;
    return FSDPI_RAILS_DEPTH * each * (size_t)(nodes->count - 1) + 1;
}

bool fsdpi_rails_fit(const fsdp_context *ctx)
{
    const size_t places = places_at_most(&ctx->nodes, FSDPI_REDUCES | FSDPI_GATHERS | FSDPI_AROUND, true);

    return ctx->box.rest_bytes / places >= sizeof(double);
}

/*
 * BYTES. From host memory, messages that MPI sends without asking the receiver first: the question would wait behind what is under
 * way. From a GPU's own memory each costs more, which longer ones are better worth; but the first and the last chunk of a part
 * overlap with nothing.
 */
static size_t wanted_bytes(const fsdp_request *request)
{
    if (!request->call.on_device || fsdpi_rails_stages(request)) {
        return CHUNK_BYTES;
    }
    const size_t bytes = fsdpi_largest_slice(request) * request->call.width / DEVICE_CHUNKS;

    return bytes < DEVICE_CHUNK_LEAST ? DEVICE_CHUNK_LEAST : bytes < DEVICE_CHUNK_MOST ? bytes : DEVICE_CHUNK_MOST;
}

/* So many blocks at once, each way, that chunks need not be shorter than they should be, but one at least. */
static size_t window_of(const fsdp_request *request)
{
    const size_t wanted = wanted_bytes(request), block = fsdpi_largest_slice(request) * request->call.width;
    const size_t chunk = block < wanted ? block : wanted, others = (size_t)request->ctx->size - 1;
    const size_t room = request->ctx->box.rest_bytes / (2 * FSDPI_RAILS_DEPTH * (chunk > 0 ? chunk : 1));

    return room < 1 ? 1 : room < others ? room : others;
}

static size_t places_needed(const fsdp_request *request, unsigned route)
{
    const fsdp_context *ctx    = request->ctx;
    const bool          stages = fsdpi_rails_stages(request);

    if ((route & FSDPI_EXCHANGES) != 0) {
        return stages ? 2 * FSDPI_RAILS_DEPTH * ctx->rails.window : 0;
    }
    return places_at_most(&ctx->nodes, route, stages);
}

/* BYTES of a chunk that staging memory has room for. On the host half of it is for what cannot be addressed on peers. */
static size_t room_bytes(const fsdp_request *request, unsigned route)
{
    const size_t places = places_needed(request, route), all = request->ctx->box.rest_bytes;

    if (places <= 1) {
        return SIZE_MAX;
    }
    if (request->call.on_device) {
        return all / places;
    }
    const size_t room = all / 2 / places, piece = fsdpi_piece(request) * request->call.width;
    return room < piece ? room : piece;
}

static size_t chunk_elements(const fsdp_request *request, unsigned route)
{
    const size_t width = request->call.width, most = (size_t)request->ctx->config.message_bytes;
    const size_t room  = room_bytes(request, route);
    size_t       bytes = wanted_bytes(request);

    bytes = bytes < most ? bytes : most;
    bytes = bytes < room ? bytes : room;
    bytes = bytes / FSDPI_LINE > 0 ? bytes / FSDPI_LINE * FSDPI_LINE : bytes;
    return bytes / width > 0 ? bytes / width : 1;
}

bool fsdpi_rails_stages(const fsdp_request *request)
{
    return request->call.on_device && !request->ctx->gpu.aware;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

void fsdpi_rails_lay_out(fsdp_request *request, unsigned route)
{
    fsdp_context *ctx   = request->ctx;
    fsdpi_rails  *rails = &ctx->rails;

    rails->n_sends = rails->n_receives = 0;
    rails->n_messages                  = 0;
    rails->n_places                    = 0;
    rails->n_in_turns                  = 0;
    rails->turn = rails->in_turn = rails->leaving = 0;
    rails->reducing = rails->reduced = 0;
    rails->window                    = (route & FSDPI_EXCHANGES) != 0 ? window_of(request) : 0;
    rails->chunk                     = chunk_elements(request, route);
    rails->chunks                    = fsdpi_rails_chunks(request, fsdpi_slice_of(request, ctx->rank).count);
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
    for (size_t i = 0; i < (rails->n_sends + rails->n_receives) * FSDPI_RAILS_DEPTH; i++) {
        rails->messages[i] = MPI_REQUEST_NULL;
    }
}

fsdpi_slice fsdpi_rails_chunk_of(const fsdp_request *request, size_t begin, size_t count, size_t number)
{
    const size_t chunk = request->ctx->rails.chunk;
    const size_t skip  = number * chunk;

    return (fsdpi_slice){.begin = begin + skip, .count = count - skip < chunk ? count - skip : chunk};
}
