#include "collectives/rails.h"

#include "collectives/arguments.h"
#include "collectives/rails_layout.h"
#include "collectives/reach.h"
#include "lib/context.h"
#include "lib/device/gpu_request.h"

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

/* BYTES of staging memory before a place. */
static size_t before_place(const fsdp_request *request, size_t index)
{
    return index * request->ctx->rails.chunk * request->call.width;
}

/* A place in the staging memory of whoever computes. */
static unsigned char *place(const fsdp_request *request, size_t index)
{
    const fsdp_context *ctx = request->ctx;
    unsigned char *rest = request->call.on_device ? fsdpi_gpu_rest(ctx) : fsdpi_rest_of(&ctx->box, ctx->nodes.position);

    return rest + before_place(request, index);
}

static size_t place_number(const fsdpi_transfer *t, size_t number)
{
    return t->places + number % FSDPI_RAILS_DEPTH;
}

/* That of a chunk of a partial result. */
static unsigned char *place_of(const fsdp_request *request, const fsdpi_transfer *t, size_t number)
{
    return place(request, place_number(t, number));
}

/* That of any chunk, for MPI, where it does not take the GPU's memory. */
static unsigned char *pinned_place_of(const fsdp_request *request, const fsdpi_transfer *t, size_t number)
{
    const fsdp_context *ctx = request->ctx;

    return fsdpi_rest_of(&ctx->box, ctx->nodes.position) + before_place(request, place_number(t, number));
}

static fsdpi_slice chunk_of(const fsdp_request *request, const fsdpi_transfer *t, size_t number)
{
    return fsdpi_rails_chunk_of(request, t->begin, t->count, number);
}

/* Where a part, or its input, lies on this rank from an element of the whole on. */
static const unsigned char *own_data(const fsdp_request *request, unsigned route, const fsdpi_transfer *t, size_t begin)
{
    const fsdpi_call *call  = &request->call;
    const size_t      width = request->call.width;

    if ((route & FSDPI_EXCHANGES) != 0) { /* in place the input has been copied */
        return (request->scratch != NULL ? request->scratch : (const unsigned char *)call->in) + begin * width;
    }
    if (t->part == request->ctx->rank && (route & FSDPI_REDUCES) == 0) {
        return (const unsigned char *)call->in + (begin - t->begin) * width; /* the input is the part alone */
    }
    return (const unsigned char *)call->out + begin * width;
}

static fsdp_redop partial_op(const fsdp_request *request)
{
    return request->call.op == FSDP_AVG ? FSDP_SUM : request->call.op;
}

/* Where the node's partial reduction of some elements is to be found: in a place, or, on a node of one rank, as its input. */
static const unsigned char *partial_at(const fsdp_request *request, fsdpi_slice c, const unsigned char *in_place)
{
    return request->ctx->nodes.size > 1 ? in_place
                                        : (const unsigned char *)request->call.in + c.begin * request->call.width;
}

static fsdp_status compute_partial(fsdp_request *request, fsdpi_slice c, unsigned char *to)
{
    return request->ctx->nodes.size > 1 ? fsdpi_reduce_inputs(request, c.begin, c.count, partial_op(request), 1, to)
                                        : FSDP_OK;
}

/* Where a chunk that is sent lies, whatever MPI takes. */
static const unsigned char *sent_data(const fsdp_request *request, unsigned route, const fsdpi_transfer *t,
                                      size_t number)
{
    const fsdpi_slice c = chunk_of(request, t, number);

    return t->partial ? partial_at(request, c, place_of(request, t, number)) : own_data(request, route, t, c.begin);
}

/* Where a chunk that is received has to go. */
static unsigned char *received_data(const fsdp_request *request, const fsdpi_transfer *t, size_t number)
{
    const fsdpi_slice c = chunk_of(request, t, number);

    return t->partial ? place_of(request, t, number)
                      : (unsigned char *)request->call.out + c.begin * request->call.width;
}

/* ---- what the GPU does for a chunk before it is sent, or when it has come ------------------------------------------ */

/*
 * The own stream is for what leaves the GPU, the other one for what comes and is reduced. A transfer's work on a chunk has
 * ended when its mark is passed. On the host it has ended when it has been begun.
 */
enum { LEAVING = false, COMING = true };

/* The rows of marks are those of the messages, and two more. */
static size_t row_of_reductions(const fsdpi_rails *rails)
{
    return rails->n_sends + rails->n_receives;
}

static size_t mark_of(size_t row, size_t number)
{
    return row * FSDPI_RAILS_DEPTH + number % FSDPI_RAILS_DEPTH;
}

static size_t first_mark(const fsdp_request *request)
{
    return mark_of(row_of_reductions(&request->ctx->rails) + 1, 0);
}

static fsdpi_transfer *transfer_at(fsdpi_rails *rails, size_t row)
{
    return row < rails->n_sends ? &rails->sends[row] : &rails->receives[row - rails->n_sends];
}

static void tell_landed(fsdp_context *ctx, int part, size_t chunks)
{
    if (ctx->nodes.size > 1) {
        atomic_store_explicit(&ctx->box.desks[ctx->nodes.position]->landed[part], chunks, memory_order_release);
        fsdpi_mailbox_wake(ctx);
    }
}

static void end_work(fsdp_context *ctx, size_t row)
{
    fsdpi_transfer *t = transfer_at(&ctx->rails, row);

    t->ended++;
    if (row >= ctx->rails.n_sends && !t->partial) {
        tell_landed(ctx, t->part, t->ended);
    }
}

/* `on_gpu`: something has been put into the stream for the chunk that is begun. */
static void begin_work(fsdp_request *request, size_t row, bool on_gpu)
{
    fsdpi_transfer *t = transfer_at(&request->ctx->rails, row);

    if (on_gpu) {
        fsdpi_gpu_mark(request, mark_of(row, t->begun));
    }
    t->begun++;
    if (!on_gpu) {
        end_work(request->ctx, row);
    }
}

/* The next chunk of a send becomes ready to be sent. */
static fsdp_status begin_send(fsdp_request *request, unsigned route, size_t row)
{
    const fsdpi_transfer *t        = &request->ctx->rails.sends[row];
    const fsdpi_slice     c        = chunk_of(request, t, t->begun);
    const bool            stages   = fsdpi_rails_stages(request);
    const bool            computes = t->partial && request->ctx->nodes.size > 1;

    fsdpi_gpu_turn_aside(request, LEAVING);
    if (computes) {
        FSDP_TRY(compute_partial(request, c, place_of(request, t, t->begun)));
    }
    if (stages) {
        fsdpi_gpu_move(request, fsdpi_gpu_view(request->ctx, pinned_place_of(request, t, t->begun)),
                       sent_data(request, route, t, t->begun), c.count * request->call.width);
    }
    begin_work(request, row, request->call.on_device && (stages || computes));
    return FSDP_OK;
}

/* The next chunk of a receive has come, and goes where it belongs. */
static void begin_arrival(fsdp_request *request, size_t row)
{
    const fsdpi_transfer *t      = transfer_at(&request->ctx->rails, row);
    const bool            stages = fsdpi_rails_stages(request);

    fsdpi_gpu_turn_aside(request, COMING);
    if (stages) {
        fsdpi_gpu_move(request, received_data(request, t, t->begun),
                       fsdpi_gpu_view(request->ctx, pinned_place_of(request, t, t->begun)),
                       chunk_of(request, t, t->begun).count * request->call.width);
    }
    begin_work(request, row, stages);
}

static void look_at_marks(fsdp_request *request, bool *moved)
{
    fsdp_context *ctx   = request->ctx;
    fsdpi_rails  *rails = &ctx->rails;

    for (size_t row = 0; row < rails->n_sends + rails->n_receives; row++) {
        const fsdpi_transfer *t = transfer_at(rails, row);

        while (t->ended < t->begun && fsdpi_gpu_is_past(request, mark_of(row, t->ended))) {
            end_work(ctx, row);
            *moved = true;
        }
    }
}

/* ---- sending and receiving --------------------------------------------------------------------------------------- */

static int tag_of(const fsdp_request *request, const fsdpi_transfer *t)
{
    if (request->ctx->rails.window > 0) {
        return FSDPI_TAG_BLOCKS;
    }
    return t->partial ? FSDPI_TAG_PARTIALS : FSDPI_TAG_PARTS + t->part;
}

/* Whether the transfer before, of all sends or all receives, that has had its places is over. */
static bool has_turn(const fsdpi_rails *rails, const fsdpi_transfer *all, size_t number)
{
    if (rails->window == 0 || number < rails->window) {
        return true;
    }
    const fsdpi_transfer *before = &all[number - rails->window];
    return before->done == before->chunks && before->ended == before->chunks;
}

/* How many chunks of a send are there to be sent. */
static size_t available(const fsdp_request *request, unsigned route, const fsdpi_transfer *t)
{
    const fsdpi_rails *rails = &request->ctx->rails;

    if (!has_turn(rails, rails->sends, (size_t)(t - rails->sends))) {
        return 0;
    }
    if (t->partial || rails->window > 0) {
        return t->chunks;
    }
    if (t->part == request->ctx->rank) {
        return (route & FSDPI_REDUCES) != 0 ? rails->reduced : t->chunks;
    }
    for (size_t i = 0; i < rails->n_receives; i++) {
        if (!rails->receives[i].partial && rails->receives[i].part == t->part) {
            return rails->receives[i].ended;
        }
    }
    return 0;
}

static size_t bytes_of_chunk(const fsdp_request *request, const fsdpi_transfer *t, size_t number)
{
    return chunk_of(request, t, number).count * request->call.width;
}

static fsdp_status post_send(fsdp_request *request, unsigned route, size_t row)
{
    fsdp_context        *ctx   = request->ctx;
    fsdpi_transfer      *t     = &ctx->rails.sends[row];
    const size_t         bytes = bytes_of_chunk(request, t, t->posted);
    MPI_Request         *slot  = &ctx->rails.messages[mark_of(row, t->posted)];
    const unsigned char *data =
        fsdpi_rails_stages(request) ? pinned_place_of(request, t, t->posted) : sent_data(request, route, t, t->posted);

    FSDPI_TRY_MPI(ctx, MPI_Isend(data, (int)bytes, MPI_BYTE, t->peer, tag_of(request, t), ctx->comm, slot));
    t->complete[t->posted % FSDPI_RAILS_DEPTH] = false;
    t->posted++;
    ctx->rails.n_messages++;
    ctx->rails.leaving += row < ctx->rails.n_in_turns ? bytes : 0;
    return FSDP_OK;
}

static fsdp_status post_receive(fsdp_request *request, size_t row)
{
    fsdp_context   *ctx   = request->ctx;
    fsdpi_transfer *t     = transfer_at(&ctx->rails, row);
    const size_t    bytes = bytes_of_chunk(request, t, t->posted);
    MPI_Request    *slot  = &ctx->rails.messages[mark_of(row, t->posted)];
    unsigned char  *to =
        fsdpi_rails_stages(request) ? pinned_place_of(request, t, t->posted) : received_data(request, t, t->posted);

    FSDPI_TRY_MPI(ctx, MPI_Irecv(to, (int)bytes, MPI_BYTE, t->peer, tag_of(request, t), ctx->comm, slot));
    t->complete[t->posted % FSDPI_RAILS_DEPTH] = false;
    t->posted++;
    ctx->rails.n_messages++;
    return FSDP_OK;
}

static fsdp_status post_receives(fsdp_request *request, bool *moved)
{
    fsdpi_rails *rails = &request->ctx->rails;

    for (size_t i = 0; i < rails->n_receives; i++) {
        fsdpi_transfer *t = &rails->receives[i];

        while (has_turn(rails, rails->receives, i) && t->posted < t->chunks &&
               t->posted - (t->partial ? rails->reduced : t->ended) < FSDPI_RAILS_DEPTH) {
            FSDP_TRY(post_receive(request, rails->n_sends + i));
            *moved = true;
        }
    }
    return FSDP_OK;
}

/*
 * Between nodes of one size, partial results are sent to one peer after the other. A connection fills the link; several
 * that carry data at once each find less of it than is free (TCP with BBR, all at once: with 3, 6, 9 and 12 per link 1.08,
 * 1.12, 1.14 and 1.18 times the bound). Where one node has more ranks than the others its link is the last to be done, and
 * all feed it all the time. A turn is of half the chunks that a receiver has places for, so that it can reduce one half
 * while the other comes. All turns are of the same length, and kept until they are used up: no receiver waits for a chunk
 * that waits behind later ones of its peers.
 */
enum { CHUNKS_IN_A_TURN = FSDPI_RAILS_DEPTH / 2 };

/* Whether it has passed to another transfer, or begun again, which takes that no more than one chunk is under way. */
static bool pass_turn(const fsdp_request *request)
{
    fsdpi_rails *rails = &request->ctx->rails;
    size_t       next  = rails->turn;

    if (rails->leaving > rails->chunk * request->call.width) {
        return false;
    }
    do {
        next = (next + 1) % rails->n_in_turns;
    } while (next != rails->turn && rails->sends[next].posted == rails->sends[next].chunks);
    rails->turn    = next;
    rails->in_turn = 0;
    return rails->sends[next].posted < rails->sends[next].chunks;
}

static fsdp_status post_in_turns(fsdp_request *request, unsigned route, bool *moved)
{
    fsdpi_rails *rails = &request->ctx->rails;

    while (rails->n_in_turns > 0) {
        const fsdpi_transfer *t    = &rails->sends[rails->turn];
        const bool            over = t->posted == t->chunks || rails->in_turn == CHUNKS_IN_A_TURN;

        if (over ? !pass_turn(request) : t->posted == t->ended) {
            break;
        }
        if (!over) {
            FSDP_TRY(post_send(request, route, rails->turn));
            rails->in_turn++;
            *moved = true;
        }
    }
    return FSDP_OK;
}

/* One chunk more of each send that has room, so that none waits for the others' reductions. */
static fsdp_status post_sends(fsdp_request *request, unsigned route, bool *moved)
{
    fsdpi_rails *rails = &request->ctx->rails;

    for (size_t i = 0; i < rails->n_sends; i++) {
        fsdpi_transfer *t = &rails->sends[i];

        if (t->begun < available(request, route, t) && t->begun - t->done < FSDPI_RAILS_DEPTH) {
            FSDP_TRY(begin_send(request, route, i));
            *moved = true;
        }
        while (i >= rails->n_in_turns && t->posted < t->ended) {
            FSDP_TRY(post_send(request, route, i));
            *moved = true;
        }
    }
    return post_in_turns(request, route, moved);
}

static void note_complete(fsdp_request *request, size_t message)
{
    fsdpi_rails    *rails = &request->ctx->rails;
    const size_t    row   = message / FSDPI_RAILS_DEPTH;
    fsdpi_transfer *t     = transfer_at(rails, row);

    t->complete[message % FSDPI_RAILS_DEPTH] = true;
    while (t->done < t->posted && t->complete[t->done % FSDPI_RAILS_DEPTH]) {
        t->complete[t->done % FSDPI_RAILS_DEPTH] = false;
        rails->leaving -= row < rails->n_in_turns ? bytes_of_chunk(request, t, t->done) : 0;
        t->done++;
        if (row >= rails->n_sends) {
            begin_arrival(request, row);
        }
    }
}

static fsdp_status look_at_messages(fsdp_request *request, bool *moved)
{
    fsdp_context *ctx   = request->ctx;
    fsdpi_rails  *rails = &ctx->rails;
    const int     all   = (int)((rails->n_sends + rails->n_receives) * FSDPI_RAILS_DEPTH);
    int           n     = 0;

    if (rails->n_messages == 0) {
        return FSDP_OK;
    }
    FSDPI_TRY_MPI(ctx, MPI_Testsome(all, rails->messages, &n, rails->completed, MPI_STATUSES_IGNORE));
    for (int i = 0; n != MPI_UNDEFINED && i < n; i++) {
        note_complete(request, (size_t)rails->completed[i]);
        rails->n_messages--;
        *moved = true;
    }
    return FSDP_OK;
}

/* ---- reducing and copying ---------------------------------------------------------------------------------------- */

/* Chunks of this rank's own part of which all nodes' partial results are there, or will be when the stream comes to them. */
static size_t ready_to_reduce(const fsdpi_rails *rails)
{
    size_t ready = rails->chunks;

    for (size_t i = 0; i < rails->n_receives; i++) {
        if (rails->receives[i].partial && rails->receives[i].begun < ready) {
            ready = rails->receives[i].begun;
        }
    }
    return ready;
}

/* The next chunk of this rank's own part, over all nodes in their order. */
static fsdp_status reduce_chunk(fsdp_request *request)
{
    fsdp_context        *ctx   = request->ctx;
    fsdpi_rails         *rails = &ctx->rails;
    const fsdpi_slice    mine  = fsdpi_slice_of(request, ctx->rank);
    const fsdpi_slice    c     = fsdpi_rails_chunk_of(request, mine.begin, mine.count, rails->reducing);
    unsigned char *const own   = place(request, rails->n_places);

    FSDP_TRY(compute_partial(request, c, own));
    ctx->operands[ctx->nodes.mine] = partial_at(request, c, own);
    for (size_t i = 0; i < rails->n_receives; i++) {
        if (rails->receives[i].partial) {
            ctx->operands[ctx->nodes.node_of[rails->receives[i].peer]] =
                place_of(request, &rails->receives[i], rails->reducing);
        }
    }
    fsdpi_reduce_operands(request, fsdpi_own_result(request) + (c.begin - mine.begin) * request->call.width,
                          (size_t)ctx->nodes.count, c.count, request->call.op, (size_t)ctx->size);
    return FSDP_OK;
}

static fsdp_status begin_reduction(fsdp_request *request, bool *moved)
{
    fsdpi_rails *rails = &request->ctx->rails;

    if (rails->reducing >= ready_to_reduce(rails)) {
        return FSDP_OK;
    }
    fsdpi_gpu_turn_aside(request, COMING);
    FSDP_TRY(reduce_chunk(request));
    if (request->call.on_device) {
        fsdpi_gpu_mark(request, mark_of(row_of_reductions(rails), rails->reducing));
    }
    rails->reducing++;
    *moved = true;
    return FSDP_OK;
}

static void end_reductions(fsdp_request *request, unsigned route, bool *moved)
{
    fsdp_context *ctx   = request->ctx;
    fsdpi_rails  *rails = &ctx->rails;
    const size_t  row   = row_of_reductions(rails);

    while (rails->reduced < rails->reducing &&
           (!request->call.on_device || fsdpi_gpu_is_past(request, mark_of(row, rails->reduced)))) {
        rails->reduced++;
        *moved = true;
        if ((route & FSDPI_GATHERS) != 0) {
            tell_landed(ctx, ctx->rank, rails->reduced);
        }
    }
}

static fsdp_status reduce_ready(fsdp_request *request, unsigned route, bool *moved)
{
    if ((route & FSDPI_REDUCES) == 0) {
        return FSDP_OK;
    }
    FSDP_TRY(begin_reduction(request, moved));
    end_reductions(request, route, moved);
    return FSDP_OK;
}

/* Copies what has newly come of a part to a peer on this node. `done` is cleared while some is still to come. */
static fsdp_status copy_part(fsdp_request *request, unsigned route, int part, bool *moved, bool *done)
{
    fsdp_context     *ctx      = request->ctx;
    fsdpi_rails      *rails    = &ctx->rails;
    const int         position = ctx->nodes.position_of[fsdpi_rails_holder(&ctx->nodes, ctx->nodes.mine, part)];
    const fsdpi_slice slice    = fsdpi_slice_of(request, part);
    const size_t      chunks = fsdpi_rails_chunks(request, slice.count), width = request->call.width,
                 number  = rails->copied[part];
    const bool  is_input = ctx->nodes.node_of[part] == ctx->nodes.mine && (route & FSDPI_REDUCES) == 0;
    fsdpi_desk *desk     = ctx->box.desks[position];

    if (number == chunks) {
        return FSDP_OK;
    }
    *done = false;
    if (!is_input && atomic_load_explicit(&desk->landed[part], memory_order_acquire) <= number) {
        return FSDP_OK;
    }
    const fsdpi_slice c = fsdpi_rails_chunk_of(request, slice.begin, slice.count, number);
    fsdpi_gpu_turn_aside(request, COMING);
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

    const size_t skip = (route & FSDPI_EXCHANGES) != 0 ? mine.begin * width : 0; /* the input is whole */

    fsdpi_gpu_turn_aside(request, COMING);
    if ((route & (FSDPI_GATHERS | FSDPI_EXCHANGES)) != 0 && (route & FSDPI_REDUCES) == 0) {
        fsdpi_copy(request, (unsigned char *)request->call.out + mine.begin * width,
                   (const unsigned char *)request->call.in + skip, mine.count * width);
    }
}

static fsdp_status copy_from_peers(fsdp_request *request, unsigned route, bool *moved, bool *done)
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

/* ---- all of it together ------------------------------------------------------------------------------------------ */

enum { LAY_OUT, START, FIRST_MESSAGES, ALL };

static bool is_over(const fsdpi_rails *rails, unsigned route)
{
    for (size_t i = 0; i < rails->n_sends; i++) {
        if (rails->sends[i].done < rails->sends[i].chunks) {
            return false;
        }
    }
    for (size_t i = 0; i < rails->n_receives; i++) {
        if (rails->receives[i].ended < rails->receives[i].chunks) {
            return false;
        }
    }
    return (route & FSDPI_REDUCES) == 0 || rails->reduced == rails->chunks;
}

/* Both streams come behind the work that the caller, and peers on the node, have put before the operation. */
static void start_on_device(fsdp_request *request)
{
    fsdpi_gpu_hear_ready(request, request->number);
    fsdpi_gpu_mark(request, first_mark(request));
    fsdpi_gpu_turn_aside(request, COMING);
    fsdpi_gpu_come_behind(request, first_mark(request));
}

/* MPI knows no streams: where it is given the caller's memory itself, the host waits for that work. */
static bool has_started(fsdp_request *request)
{
    const bool gives_memory = request->call.on_device && !fsdpi_rails_stages(request);

    return !gives_memory || fsdpi_gpu_is_past(request, first_mark(request));
}

static bool begin(fsdp_request *request, unsigned route)
{
    switch (request->stage) {
    case LAY_OUT:
        fsdpi_rails_lay_out(request, route);
        if (request->call.on_device) {
            start_on_device(request);
        }
        request->stage = START;
        break;
    case FIRST_MESSAGES:
        copy_own_part(request, route);
        request->stage = ALL;
        return true;
    default:
        break;
    }
    if (request->stage == START && has_started(request)) {
        request->stage = FIRST_MESSAGES;
    }
    return request->stage != START;
}

/* What comes is waited for at last: what leaves has been sent, and what is reduced has been seen to be final. */
static bool is_at_rest(fsdp_request *request)
{
    if (!request->call.on_device) {
        return true;
    }
    fsdpi_gpu_turn_aside(request, COMING);
    const bool idle = fsdpi_gpu_is_idle(request);
    fsdpi_gpu_turn_aside(request, LEAVING);
    return idle;
}

fsdp_status fsdpi_rails_advance(fsdp_request *request, unsigned route, fsdpi_progress *progress)
{
    bool moved = false, copied = true;

    *progress = FSDPI_WAITING;
    if (!begin(request, route)) {
        return FSDP_OK;
    }
    FSDP_TRY(look_at_messages(request, &moved));
    look_at_marks(request, &moved);
    FSDP_TRY(post_receives(request, &moved));
    FSDP_TRY(post_sends(request, route, &moved));
    FSDP_TRY(reduce_ready(request, route, &moved));
    FSDP_TRY(copy_from_peers(request, route, &moved, &copied));
    if (moved || request->stage < ALL) {
        *progress = FSDPI_MOVED;
    } else if (copied && is_over(&request->ctx->rails, route) && is_at_rest(request)) {
        *progress = FSDPI_FINISHED;
    }
    return FSDP_OK;
}

void fsdpi_rails_end(fsdp_request *request)
{
    fsdpi_rails_forget_landed(request->ctx);
}
