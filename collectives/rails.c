#include "collectives/rails.h"

#include <string.h>

#include "collectives/arguments.h"
#include "collectives/reach.h"
#include "lib/context.h"

/* BYTES of a chunk: enough to be worth a message, few enough that the link never waits long for the first one. */
enum { CHUNK_BYTES = 48 << 10 };

/* ---- who sends what to whom -------------------------------------------------------------------------------------- */

/* The rank of a node that deals with a part whose owner is on another node. */
static int dealer(const fsdpi_nodes *nodes, int node, int part)
{
    return fsdpi_rank_at(nodes, node, nodes->position_of[part] % fsdpi_node_size(nodes, node));
}

/* The rank of a node that first has a part there. */
static int holder(const fsdpi_nodes *nodes, int node, int part)
{
    return nodes->node_of[part] == node ? part : dealer(nodes, node, part);
}

static int node_after(const fsdpi_nodes *nodes, int k)
{
    return (nodes->mine + k + nodes->count) % nodes->count;
}

static size_t n_chunks(const fsdp_request *request, size_t count)
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
                                         .chunks  = n_chunks(request, slice.count)};
    rails->n_places += partial ? FSDPI_RAILS_DEPTH : 0;
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
            if (holder(nodes, nodes->mine, part) != me) {
                continue;
            }
            if (k > 0) {
                add(request, false, holder(nodes, last, part), part, false);
            }
            if (k + 1 < nodes->count) {
                add(request, true, dealer(nodes, next, part), part, false);
            }
        }
    }
}

/* The same on all ranks: what the staging memory of each has room for at once, whichever transfers it has. */
static size_t chunk_elements(const fsdp_request *request, unsigned route)
{
    const fsdp_context *ctx      = request->ctx;
    const fsdpi_nodes  *nodes    = &ctx->nodes;
    const size_t        width    = request->call.width;
    const size_t        per_node = 1 + (size_t)((nodes->largest + nodes->smallest - 1) / nodes->smallest);
    const size_t        places   = FSDPI_RAILS_DEPTH * per_node * (size_t)(nodes->count - 1) + 1;
    size_t              bytes    = CHUNK_BYTES;

    bytes = bytes < (size_t)ctx->config.message_bytes ? bytes : (size_t)ctx->config.message_bytes;
    if ((route & FSDPI_REDUCES) != 0) {
        const size_t room  = ctx->box.rest_bytes / 2 / places;
        const size_t piece = fsdpi_piece(request) * width;
        bytes              = bytes < room ? bytes : room;
        bytes              = bytes < piece ? bytes : piece;
    }
    bytes = bytes / FSDPI_LINE > 0 ? bytes / FSDPI_LINE * FSDPI_LINE : bytes;
    return bytes / width > 0 ? bytes / width : 1;
}

static void lay_out(fsdp_request *request, unsigned route)
{
    fsdp_context *ctx   = request->ctx;
    fsdpi_rails  *rails = &ctx->rails;

    rails->n_sends = rails->n_receives = 0;
    rails->n_messages                  = 0;
    rails->n_places                    = 0;
    rails->reduced                     = 0;
    rails->chunk                       = chunk_elements(request, route);
    rails->chunks                      = n_chunks(request, fsdpi_slice_of(request, ctx->rank).count);
    memset(rails->copied, 0, (size_t)ctx->size * sizeof *rails->copied);
    if ((route & FSDPI_REDUCES) != 0) {
        lay_out_partials(request);
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

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

/* The elements of a chunk of a part that begins at `begin` and has `count`. */
static fsdpi_slice chunk_of(const fsdp_request *request, size_t begin, size_t count, size_t number)
{
    const size_t chunk = request->ctx->rails.chunk;
    const size_t skip  = number * chunk;

    return (fsdpi_slice){.begin = begin + skip, .count = count - skip < chunk ? count - skip : chunk};
}

/* A place in staging memory. */
static unsigned char *place(const fsdp_request *request, size_t index)
{
    const fsdp_context *ctx = request->ctx;

    return fsdpi_rest_of(&ctx->box, ctx->nodes.position) + index * ctx->rails.chunk * request->call.width;
}

/* That of a chunk of a partial result. */
static unsigned char *place_of(const fsdp_request *request, const fsdpi_transfer *t, size_t number)
{
    return place(request, t->places + number % FSDPI_RAILS_DEPTH);
}

/* Where a part, or its input, lies on this rank from an element of the whole on. */
static const unsigned char *own_data(const fsdp_request *request, unsigned route, const fsdpi_transfer *t, size_t begin)
{
    const fsdpi_call *call  = &request->call;
    const size_t      width = request->call.width;

    if (t->part == request->ctx->rank && (route & FSDPI_REDUCES) == 0) {
        return (const unsigned char *)call->in + (begin - t->begin) * width; /* the input is the part alone */
    }
    return (const unsigned char *)call->out + begin * width;
}

static fsdp_redop partial_op(const fsdp_request *request)
{
    return request->call.op == FSDP_AVG ? FSDP_SUM : request->call.op;
}

/* The node's partial reduction of some elements: computed into `to`; or, on a node of one rank, where its input lies. */
static fsdp_status partial_of(fsdp_request *request, fsdpi_slice c, unsigned char *to, const unsigned char **data)
{
    *data = to;
    if (request->ctx->nodes.size == 1) {
        *data = (const unsigned char *)request->call.in + c.begin * request->call.width;
        return FSDP_OK;
    }
    return fsdpi_reduce_inputs(request, c.begin, c.count, partial_op(request), 1, to);
}

/* ---- sending and receiving --------------------------------------------------------------------------------------- */

static int tag_of(const fsdpi_transfer *t)
{
    return t->partial ? FSDPI_TAG_PARTIALS : FSDPI_TAG_PARTS + t->part;
}

/* How many chunks of a send are there to be sent. */
static size_t available(const fsdp_request *request, unsigned route, const fsdpi_transfer *t)
{
    const fsdpi_rails *rails = &request->ctx->rails;

    if (t->partial) {
        return t->chunks;
    }
    if (t->part == request->ctx->rank) {
        return (route & FSDPI_REDUCES) != 0 ? rails->reduced : t->chunks;
    }
    for (size_t i = 0; i < rails->n_receives; i++) {
        if (!rails->receives[i].partial && rails->receives[i].part == t->part) {
            return rails->receives[i].done;
        }
    }
    return 0;
}

static fsdp_status post_send(fsdp_request *request, unsigned route, size_t index)
{
    fsdp_context        *ctx   = request->ctx;
    fsdpi_transfer      *t     = &ctx->rails.sends[index];
    const fsdpi_slice    c     = chunk_of(request, t->begin, t->count, t->posted);
    const size_t         bytes = c.count * request->call.width;
    MPI_Request         *slot  = &ctx->rails.messages[index * FSDPI_RAILS_DEPTH + t->posted % FSDPI_RAILS_DEPTH];
    const unsigned char *data;

    if (t->partial) {
        FSDP_TRY(partial_of(request, c, place_of(request, t, t->posted), &data));
    } else {
        data = own_data(request, route, t, c.begin);
    }
    FSDPI_TRY_MPI(ctx, MPI_Isend(data, (int)bytes, MPI_BYTE, t->peer, tag_of(t), ctx->comm, slot));
    t->complete[t->posted % FSDPI_RAILS_DEPTH] = false;
    t->posted++;
    ctx->rails.n_messages++;
    return FSDP_OK;
}

static fsdp_status post_receive(fsdp_request *request, size_t index)
{
    fsdp_context     *ctx   = request->ctx;
    fsdpi_rails      *rails = &ctx->rails;
    fsdpi_transfer   *t     = &rails->receives[index];
    const fsdpi_slice c     = chunk_of(request, t->begin, t->count, t->posted);
    const size_t      row   = rails->n_sends + index;
    MPI_Request      *slot  = &rails->messages[row * FSDPI_RAILS_DEPTH + t->posted % FSDPI_RAILS_DEPTH];
    unsigned char    *to    = t->partial ? place_of(request, t, t->posted)
                                         : (unsigned char *)request->call.out + c.begin * request->call.width;

    FSDPI_TRY_MPI(ctx,
                  MPI_Irecv(to, (int)(c.count * request->call.width), MPI_BYTE, t->peer, tag_of(t), ctx->comm, slot));
    t->complete[t->posted % FSDPI_RAILS_DEPTH] = false;
    t->posted++;
    rails->n_messages++;
    return FSDP_OK;
}

static fsdp_status post_receives(fsdp_request *request, bool *moved)
{
    fsdpi_rails *rails = &request->ctx->rails;

    for (size_t i = 0; i < rails->n_receives; i++) {
        fsdpi_transfer *t = &rails->receives[i];

        while (t->posted < t->chunks && t->posted - (t->partial ? rails->reduced : t->done) < FSDPI_RAILS_DEPTH) {
            FSDP_TRY(post_receive(request, i));
            *moved = true;
        }
    }
    return FSDP_OK;
}

/* One chunk of each send that has room: so that all links are fed at once, and none waits for the others' reductions. */
static fsdp_status post_sends(fsdp_request *request, unsigned route, bool *moved)
{
    fsdpi_rails *rails = &request->ctx->rails;

    for (size_t i = 0; i < rails->n_sends; i++) {
        fsdpi_transfer *t = &rails->sends[i];

        if (t->posted < available(request, route, t) && t->posted - t->done < FSDPI_RAILS_DEPTH) {
            FSDP_TRY(post_send(request, route, i));
            *moved = true;
        }
    }
    return FSDP_OK;
}

static void tell_landed(fsdp_context *ctx, int part, size_t chunks)
{
    if (ctx->nodes.size > 1) {
        atomic_store_explicit(&ctx->box.desks[ctx->nodes.position]->landed[part], chunks, memory_order_release);
        fsdpi_mailbox_wake(ctx);
    }
}

static void note_complete(fsdp_context *ctx, size_t message)
{
    fsdpi_rails    *rails = &ctx->rails;
    const size_t    row   = message / FSDPI_RAILS_DEPTH;
    fsdpi_transfer *t     = row < rails->n_sends ? &rails->sends[row] : &rails->receives[row - rails->n_sends];

    t->complete[message % FSDPI_RAILS_DEPTH] = true;
    while (t->done < t->posted && t->complete[t->done % FSDPI_RAILS_DEPTH]) {
        t->complete[t->done % FSDPI_RAILS_DEPTH] = false;
        t->done++;
    }
    if (row >= rails->n_sends && !t->partial) {
        tell_landed(ctx, t->part, t->done);
    }
}

static fsdp_status look_at_messages(fsdp_context *ctx, bool *moved)
{
    fsdpi_rails *rails = &ctx->rails;
    const int    all   = (int)((rails->n_sends + rails->n_receives) * FSDPI_RAILS_DEPTH);
    int          n     = 0;

    if (rails->n_messages == 0) {
        return FSDP_OK;
    }
    FSDPI_TRY_MPI(ctx, MPI_Testsome(all, rails->messages, &n, rails->completed, MPI_STATUSES_IGNORE));
    for (int i = 0; n != MPI_UNDEFINED && i < n; i++) {
        note_complete(ctx, (size_t)rails->completed[i]);
        rails->n_messages--;
        *moved = true;
    }
    return FSDP_OK;
}

/* ---- reducing and copying ---------------------------------------------------------------------------------------- */

/* Chunks of this rank's own part of which all nodes' partial results are there. */
static size_t ready_to_reduce(const fsdpi_rails *rails)
{
    size_t ready = rails->chunks;

    for (size_t i = 0; i < rails->n_receives; i++) {
        if (rails->receives[i].partial && rails->receives[i].done < ready) {
            ready = rails->receives[i].done;
        }
    }
    return ready;
}

/* The next chunk of this rank's own part, over all nodes in their order. */
static fsdp_status reduce_chunk(fsdp_request *request)
{
    fsdp_context        *ctx   = request->ctx;
    fsdpi_rails         *rails = &ctx->rails;
    const fsdpi_call    *call  = &request->call;
    const fsdpi_slice    mine  = fsdpi_slice_of(request, ctx->rank);
    const fsdpi_slice    c     = chunk_of(request, mine.begin, mine.count, rails->reduced);
    const unsigned char *own;

    FSDP_TRY(partial_of(request, c, place(request, rails->n_places), &own));
    ctx->operands[ctx->nodes.mine] = own;
    for (size_t i = 0; i < rails->n_receives; i++) {
        if (rails->receives[i].partial) {
            ctx->operands[ctx->nodes.node_of[rails->receives[i].peer]] =
                place_of(request, &rails->receives[i], rails->reduced);
        }
    }
    ctx->kernels->reduce(fsdpi_own_result(request) + (c.begin - mine.begin) * request->call.width, ctx->operands,
                         (size_t)ctx->nodes.count, c.count, call->dtype, call->op, (size_t)ctx->size);
    rails->reduced++;
    return FSDP_OK;
}

static fsdp_status reduce_ready(fsdp_request *request, unsigned route, bool *moved)
{
    fsdpi_rails *rails = &request->ctx->rails;

    if ((route & FSDPI_REDUCES) == 0 || rails->reduced >= ready_to_reduce(rails)) {
        return FSDP_OK;
    }
    FSDP_TRY(reduce_chunk(request));
    if ((route & FSDPI_GATHERS) != 0) {
        tell_landed(request->ctx, request->ctx->rank, rails->reduced);
    }
    *moved = true;
    return FSDP_OK;
}

/* Copies what has newly come of a part to a peer on this node. `done` is cleared while some is still to come. */
static fsdp_status copy_part(fsdp_request *request, unsigned route, int part, bool *moved, bool *done)
{
    fsdp_context     *ctx      = request->ctx;
    fsdpi_rails      *rails    = &ctx->rails;
    const int         position = ctx->nodes.position_of[holder(&ctx->nodes, ctx->nodes.mine, part)];
    const fsdpi_slice slice    = fsdpi_slice_of(request, part);
    const size_t chunks = n_chunks(request, slice.count), width = request->call.width, number = rails->copied[part];
    const bool   is_input = ctx->nodes.node_of[part] == ctx->nodes.mine && (route & FSDPI_REDUCES) == 0;
    fsdpi_desk  *desk     = ctx->box.desks[position];

    if (number == chunks) {
        return FSDP_OK;
    }
    *done = false;
    if (!is_input && atomic_load_explicit(&desk->landed[part], memory_order_acquire) <= number) {
        return FSDP_OK;
    }
    const fsdpi_slice c = chunk_of(request, slice.begin, slice.count, number);
    FSDP_TRY(fsdpi_fetch(request, position, is_input ? FSDPI_INPUT : FSDPI_OUTPUT,
                         (is_input ? c.begin - slice.begin : c.begin) * width,
                         (unsigned char *)request->call.out + c.begin * width, c.count * width));
    rails->copied[part]++;
    *moved = true;
    return FSDP_OK;
}

/* This rank's own part into its place in the result, where it is not there already. */
static void copy_own_part(fsdp_request *request, unsigned route)
{
    const fsdpi_slice mine  = fsdpi_slice_of(request, request->ctx->rank);
    const size_t      width = request->call.width;

    if ((route & FSDPI_GATHERS) != 0 && (route & FSDPI_REDUCES) == 0) {
        fsdpi_copy(request, (unsigned char *)request->call.out + mine.begin * width, request->call.in,
                   mine.count * width);
    }
}

static fsdp_status copy_from_peers(fsdp_request *request, unsigned route, bool *moved, bool *done)
{
    const fsdp_context *ctx = request->ctx;

    if ((route & FSDPI_GATHERS) == 0 || ctx->nodes.size == 1 || (request->flags & FSDPI_FLAG_SHARED) != 0) {
        return FSDP_OK;
    }
    for (int part = 0; part < ctx->size; part++) {
        if (holder(&ctx->nodes, ctx->nodes.mine, part) != ctx->rank) {
            FSDP_TRY(copy_part(request, route, part, moved, done));
        }
    }
    return FSDP_OK;
}

/* ---- all of it together ------------------------------------------------------------------------------------------ */

static bool is_over(const fsdpi_rails *rails, unsigned route)
{
    for (size_t i = 0; i < rails->n_sends; i++) {
        if (rails->sends[i].done < rails->sends[i].chunks) {
            return false;
        }
    }
    for (size_t i = 0; i < rails->n_receives; i++) {
        if (rails->receives[i].done < rails->receives[i].chunks) {
            return false;
        }
    }
    return (route & FSDPI_REDUCES) == 0 || rails->reduced == rails->chunks;
}

fsdp_status fsdpi_rails_advance(fsdp_request *request, unsigned route, fsdpi_progress *progress)
{
    bool moved = false, copied = true;

    if (request->stage == 0) {
        lay_out(request, route);
        request->stage = 1;
    } else if (request->stage == 1) { /* behind the first messages */
        copy_own_part(request, route);
        request->stage = 2;
    }
    FSDP_TRY(look_at_messages(request->ctx, &moved));
    FSDP_TRY(post_receives(request, &moved));
    FSDP_TRY(post_sends(request, route, &moved));
    FSDP_TRY(reduce_ready(request, route, &moved));
    FSDP_TRY(copy_from_peers(request, route, &moved, &copied));
    *progress = moved || request->stage < 2 ? FSDPI_MOVED : FSDPI_WAITING;
    if (request->stage == 2 && !moved && copied && is_over(&request->ctx->rails, route)) {
        *progress = FSDPI_FINISHED;
    }
    return FSDP_OK;
}

void fsdpi_rails_end(fsdp_request *request)
{
    fsdp_context *ctx  = request->ctx;
    fsdpi_desk   *desk = ctx->box.desks[ctx->nodes.position];

    for (int part = 0; part < ctx->size; part++) {
        atomic_store_explicit(&desk->landed[part], 0, memory_order_relaxed);
    }
}
