#include "collectives/rails/chunks.h"

#include <stdint.h>

#include "collectives/rails/ops.h"
#include "collectives/rails/route.h"
#include "kernels/gpu.h"
#include "lib/context/context.h"

/*
 * BYTES that a message between many nodes should have at least; and those of a chunk where chunks come in the order of the
 * nodes, since there is no room for one from each.
 */
enum { WORTH_A_MESSAGE = 16 << 10, ORDERED_CHUNK_BYTES = 32 << 10 };

/* In that order: chunks of a stream under way at once at least, and in one reduction at most. */
enum { LEAST_WINDOW = 4, MOST_IN_A_FOLD = 32 };

/* Which chunks need staging memory, and how many would be under way if there were one to and from each rank. */
typedef struct fsdpi_demand {
    size_t chunks[FSDPI_STREAMS];
    bool   is_placed[FSDPI_STREAMS];
} fsdpi_demand;

static fsdpi_demand demand_of(const fsdp_request *request, unsigned route)
{
    const fsdpi_nodes *nodes  = &request->ctx->nodes;
    const size_t       others = (size_t)nodes->count - 1;
    const size_t       many   = (size_t)((nodes->largest + nodes->smallest - 1) / nodes->smallest);
    const bool         stages = fsdpi_rails_ops_of(request)->stages(request);
    const bool         around = (route & FSDPI_AROUND) != 0;
    fsdpi_demand       all    = {.is_placed = {nodes->largest > 1 || stages, true, stages, stages}};

    if ((route & FSDPI_REDUCES) != 0) {
        all.chunks[FSDPI_PARTIALS_OUT] = others * many;
        all.chunks[FSDPI_PARTIALS_IN]  = others;
    }
    if ((route & FSDPI_COLLECTS) != 0) {
        all.chunks[FSDPI_PARTS_OUT] = 1;
        all.chunks[FSDPI_PARTS_IN]  = others;
    } else if ((route & FSDPI_MOVES) != 0) {
        /* Around a ring: to and from one node, and some more, so that what comes can be passed on. */
        all.chunks[FSDPI_PARTS_OUT] = around ? 2 * many : others;
        all.chunks[FSDPI_PARTS_IN]  = around ? 2 * many : others * many;
    }
    return all;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Chunks of a stream that may be under way, of so many that would be. */
static size_t window_of(const fsdp_request *request, size_t chunks)
{
    return chunks > 0 ? smaller(chunks, fsdpi_rails_window(request->ctx->size)) : 1;
}

bool fsdpi_rails_pulls(const fsdp_request *request)
{
    return request->ctx->link.pulls && !request->call.on_device;
}

size_t fsdpi_rails_vector(const fsdp_request *request)
{
    return request->ctx->nodes.count == 2 ? request->call.whole * request->call.width : SIZE_MAX;
}

static bool copies_last(const fsdp_request *request)
{
    return fsdpi_rails_pulls(request) && fsdpi_link_copies_last(&request->ctx->link, fsdpi_rails_vector(request));
}

/*
 * Whether a rank only announces the chunks of a stream, which need no place: as many as there are, so that the receiver need not
 * wait until this rank looks again, which brings chunks meanwhile, or computes. Where own parts are copied meanwhile, each finds in
 * the caches what the other has just read, as long as neither runs ahead.
 */
static bool is_announced(const fsdp_request *request, const fsdpi_demand *demand, int stream)
{
    return stream == FSDPI_PARTS_OUT && !demand->is_placed[stream] && demand->chunks[stream] > 0 &&
           copies_last(request);
}

/*
 * Chunks of a stream that may be under way, so many to and from each rank at once. Where the receiver's own core brings a chunk in
 * the call that asks for it, nothing is gained by asking for more than one: it is reduced while it is in that core's caches, and no
 * call takes longer than one chunk does.
 */
static size_t under_way(const fsdp_request *request, const fsdpi_demand *demand, int stream, size_t depth)
{
    const bool comes = stream == FSDPI_PARTIALS_IN || stream == FSDPI_PARTS_IN;

    if (is_announced(request, demand, stream)) {
        return fsdpi_rails_window(request->ctx->size);
    }
    return window_of(request, (comes && fsdpi_rails_pulls(request) ? 1 : depth) * demand->chunks[stream]);
}

/* BYTES of a chunk that staging memory has room for, so many to and from each rank at once, and one that is being reduced. */
static size_t room_bytes(const fsdp_request *request, const fsdpi_demand *demand, size_t depth)
{
    size_t places = 0;

    for (int s = 0; s < FSDPI_STREAMS; s++) {
        places += demand->is_placed[s] && demand->chunks[s] > 0 ? under_way(request, demand, s, depth) : 0;
    }
    return places > 0 ? fsdpi_rails_ops_of(request)->room_bytes(request, places + 1) : SIZE_MAX;
}

/*
 * Many nodes leave little room for each. Then fewer chunks to each are under way, so that they need not be so short: one,
 * if that is all there is; else two, so that one can come while the other is reduced.
 */
static size_t depth_of(const fsdp_request *request, const fsdpi_demand *demand, size_t part, size_t wanted)
{
    if (room_bytes(request, demand, FSDPI_RAILS_DEPTH) >= smaller(part, wanted)) {
        return FSDPI_RAILS_DEPTH;
    }
    return room_bytes(request, demand, 2) < part && room_bytes(request, demand, 1) >= part ? 1 : 2;
}

/* Whether there is no room for a chunk to and from each node that would be worth its message. */
static bool is_tight(const fsdp_request *request, const fsdpi_demand *demand, size_t depth, size_t part)
{
    const fsdp_context *ctx    = request->ctx;
    const size_t        window = fsdpi_rails_window(ctx->size);

    return room_bytes(request, demand, depth) < smaller(part, WORTH_A_MESSAGE) ||
           depth * demand->chunks[FSDPI_PARTIALS_OUT] > window || depth * demand->chunks[FSDPI_PARTIALS_IN] > window ||
           (request->call.on_device && ctx->nodes.count > FSDPI_GPU_OPERANDS);
}

/* The first chunk of each stream in staging memory, and the one behind all of them. */
static void place_streams(fsdpi_rails *rails, const fsdpi_demand *demand)
{
    size_t places = 0;

    for (int s = 0; s < FSDPI_STREAMS; s++) {
        rails->streams[s].places = places;
        places += demand->chunks[s] > 0 && demand->is_placed[s] ? rails->streams[s].window : 0;
    }
    rails->places = places;
}

bool fsdpi_rails_is_wide(const fsdp_request *request)
{
    return request->call.dtype == FSDP_BF16 || request->call.dtype == FSDP_F16;
}

size_t fsdpi_rails_spare_places(const fsdp_request *request)
{
    return fsdpi_rails_is_wide(request) ? 5 : 2;
}

/* One chunk after the other, in the order of the nodes. Returns the BYTES that there is room for. */
static size_t size_ordered_windows(fsdp_request *request, const fsdpi_demand *demand, size_t wanted)
{
    fsdpi_rails *rails  = &request->ctx->rails;
    const size_t spare  = fsdpi_rails_spare_places(request);
    size_t       window = fsdpi_rails_window(request->ctx->size), streams = 0;

    for (int s = 0; s < FSDPI_STREAMS; s++) {
        streams += demand->chunks[s] > 0 && demand->is_placed[s];
    }
    const fsdpi_rails_ops *ops = fsdpi_rails_ops_of(request);
    while (window > LEAST_WINDOW && ops->room_bytes(request, spare + streams * window) < wanted) {
        window -= window / 8 > 0 ? window / 8 : 1;
    }
    for (int s = 0; s < FSDPI_STREAMS; s++) {
        rails->streams[s].window = smaller(window, window_of(request, rails->depth * demand->chunks[s]));
    }
    rails->fold_most = smaller(rails->streams[FSDPI_PARTIALS_IN].window / 2 + 1, MOST_IN_A_FOLD);
    return ops->room_bytes(request, spare + streams * window);
}

/* So many to and from each rank. */
static size_t size_windows(fsdp_request *request, const fsdpi_demand *demand)
{
    fsdpi_rails *rails = &request->ctx->rails;

    for (int s = 0; s < FSDPI_STREAMS; s++) {
        rails->streams[s].window = under_way(request, demand, s, rails->depth);
    }
    rails->fold_most = SIZE_MAX;
    return room_bytes(request, demand, rails->depth);
}

/* Of blocks: what there is room for, which on the host bounds how much is under way, but one at least. */
static size_t size_exchange(fsdp_request *request, size_t wanted, size_t part)
{
    fsdpi_rails *rails = &request->ctx->rails;
    const size_t chunk = smaller(part, wanted), places = request->lane->box.rest_bytes / (chunk > 0 ? chunk : 1) / 2;
    const size_t most = FSDPI_RAILS_DEPTH * ((size_t)request->ctx->size - 1), window = smaller(places, most);

    for (int s = FSDPI_PARTS_OUT; s <= FSDPI_PARTS_IN; s++) {
        rails->streams[s].window = window_of(request, window);
    }
    return fsdpi_rails_ops_of(request)->stages(request)
               ? fsdpi_rails_ops_of(request)->room_bytes(request, 2 * rails->streams[FSDPI_PARTS_OUT].window + 1)
               : SIZE_MAX;
}

static size_t size_streams(fsdp_request *request, const fsdpi_demand *demand, size_t part, size_t wanted)
{
    fsdpi_rails *rails = &request->ctx->rails;

    rails->depth      = depth_of(request, demand, part, wanted);
    rails->is_ordered = false;
    if ((rails->route & FSDPI_EXCHANGES) != 0) {
        return size_exchange(request, wanted, part);
    }
    rails->is_ordered = is_tight(request, demand, rails->depth, part);
    if (!rails->is_ordered) {
        return size_windows(request, demand);
    }
    const size_t ordered = request->ctx->config.chunk_bytes > 0 ? wanted : ORDERED_CHUNK_BYTES;
    const size_t room    = size_ordered_windows(request, demand, smaller(part, smaller(wanted, ordered)));
    return smaller(room, ordered);
}

/*
 * Half of the chunks that a receiver has places for from each node, one at least. More than it has places for must not be sent
 * before others have had theirs: where all send so, each waits for a chunk that is behind one which its receiver has no place for.
 */
static size_t chunks_in_turn(const fsdpi_rails *rails, const fsdpi_demand *demand)
{
    const size_t others = demand->chunks[FSDPI_PARTIALS_IN];
    const size_t places = others > 0 ? rails->streams[FSDPI_PARTIALS_IN].window / others : 0;

    return !rails->is_ordered && places > 1 ? places / 2 : 1;
}

/* Where the link and not the core is what bounds a chunk's way: no Ethernet of 10 Gbit/s is faster. */
static bool is_slow(const fsdpi_link *link)
{
    static const double TEN_GIGABIT = 1.25e9; /* BYTES per second */

    return link->rate < TEN_GIGABIT;
}

/*
 * Chunks that are sent before MPI is asked for what has come. Over a slow link one, so that it carries chunks both ways all the time.
 * But where ranks share a link, the others receive meanwhile, and few chunks are soon under way: to look after each takes longer (an
 * alltoall of 32 KiB to each, 4 hosts of 2 ranks at 10 Gbit/s: 1.3 times as long).
 */
static size_t sent_at_once(const fsdp_request *request)
{
    enum { FEW_BYTES = 512 << 10 };
    const fsdp_context *ctx = request->ctx;
    const bool          few =
        request->call.whole * request->call.width <= FEW_BYTES && (ctx->rails.route & FSDPI_EXCHANGES) != 0;

    return is_slow(&ctx->link) && !(few && ctx->nodes.largest > 1) ? 1 : SIZE_MAX;
}

/* ELEMENTS. */
static size_t longest_part(const fsdp_request *request, unsigned route)
{
    const size_t count = request->call.count;

    if ((route & FSDPI_WHOLE) != 0) {
        return count;
    }
    return (route & FSDPI_COLLECTS) != 0 ? fsdpi_even_slice(count, request->ctx->size, 0).count
                                         : fsdpi_largest_slice(request);
}

void fsdpi_rails_size_chunks(fsdp_request *request, unsigned route)
{
    fsdpi_rails *rails = &request->ctx->rails;
    const size_t width = request->call.width, longest = (size_t)request->ctx->config.message_bytes;
    const size_t largest = longest_part(request, route);

    rails->route = route;

    const fsdpi_demand demand = demand_of(request, route);
    const size_t       wanted = fsdpi_rails_ops_of(request)->wanted_bytes(request);
    size_t             bytes  = smaller(wanted, size_streams(request, &demand, largest * width, wanted));

    bytes              = smaller(bytes, longest);
    bytes              = bytes / FSDPI_LINE > 0 ? bytes / FSDPI_LINE * FSDPI_LINE : bytes;
    rails->chunk       = bytes / width > 0 ? bytes / width : 1;
    rails->most        = fsdpi_rails_chunks(request, largest);
    rails->in_turn     = chunks_in_turn(rails, &demand);
    rails->at_once     = sent_at_once(request);
    rails->copies_last = copies_last(request);
    rails->has_turns   = request->ctx->nodes.count > 2 && request->ctx->nodes.largest == request->ctx->nodes.smallest;
    place_streams(rails, &demand);
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
