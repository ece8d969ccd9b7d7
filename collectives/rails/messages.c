#include "collectives/rails/messages.h"

#include "collectives/rails/layout.h"
#include "collectives/rails/ops.h"
#include "collectives/rails/places.h"
#include "collectives/rails/route.h"
#include "collectives/rails/work.h"
#include "lib/context/context.h"

static int tag_of(const fsdp_request *request, const fsdpi_transfer *t)
{
    if (request->ctx->rails.window > 0) {
        return FSDPI_TAG_BLOCKS;
    }
    return t->partial ? FSDPI_TAG_PARTIALS : fsdpi_rails_tag_of_part(request->ctx, t->part);
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
    return rails->receives[t->source].ended;
}

/* The place of the request of one message more. */
static MPI_Request *next_message(fsdpi_rails *rails, size_t number)
{
    rails->numbers[rails->n_messages] = (uint32_t)number;
    return &rails->messages[rails->n_messages];
}

static fsdp_status post_send(fsdp_request *request, unsigned route, size_t row)
{
    fsdp_context        *ctx   = request->ctx;
    fsdpi_transfer      *t     = &ctx->rails.sends[row];
    const size_t         bytes = fsdpi_rails_chunk_bytes(request, t, t->posted);
    MPI_Request         *slot  = next_message(&ctx->rails, fsdpi_rails_message(row, t->posted));
    const unsigned char *data  = fsdpi_rails_ops_of(request)->stages(request)
                                     ? fsdpi_rails_staged(request, t, t->posted)
                                     : fsdpi_rails_sent(request, route, t, t->posted);

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
    fsdpi_transfer *t     = fsdpi_rails_transfer(&ctx->rails, row);
    const size_t    bytes = fsdpi_rails_chunk_bytes(request, t, t->posted);
    MPI_Request    *slot  = next_message(&ctx->rails, fsdpi_rails_message(row, t->posted));
    unsigned char  *to    = fsdpi_rails_ops_of(request)->stages(request) ? fsdpi_rails_staged(request, t, t->posted)
                                                                         : fsdpi_rails_received(request, t, t->posted);

    FSDPI_TRY_MPI(ctx, MPI_Irecv(to, (int)bytes, MPI_BYTE, t->peer, tag_of(request, t), ctx->comm, slot));
    t->complete[t->posted % FSDPI_RAILS_DEPTH] = false;
    t->posted++;
    ctx->rails.n_messages++;
    return FSDP_OK;
}

fsdp_status fsdpi_rails_post_receives(fsdp_request *request, bool *moved)
{
    fsdpi_rails *rails = &request->ctx->rails;

    for (size_t i = 0; i < rails->n_receives; i++) {
        fsdpi_transfer *t = &rails->receives[i];

        while (has_turn(rails, rails->receives, i) && t->posted < t->chunks &&
               t->posted - (t->partial ? rails->reduced : t->ended) < rails->depth) {
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
static size_t chunks_in_a_turn(const fsdpi_rails *rails)
{
    return rails->depth > 1 ? rails->depth / 2 : 1;
}

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
        const bool            over = t->posted == t->chunks || rails->in_turn == chunks_in_a_turn(rails);

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
fsdp_status fsdpi_rails_post_sends(fsdp_request *request, unsigned route, bool *moved)
{
    fsdpi_rails *rails = &request->ctx->rails;

    for (size_t i = 0; i < rails->n_sends; i++) {
        fsdpi_transfer *t = &rails->sends[i];

        if (t->begun < available(request, route, t) && t->begun - t->done < rails->depth) {
            FSDP_TRY(fsdpi_rails_begin_send(request, route, i));
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
    fsdpi_transfer *t     = fsdpi_rails_transfer(rails, row);

    t->complete[message % FSDPI_RAILS_DEPTH] = true;
    while (t->done < t->posted && t->complete[t->done % FSDPI_RAILS_DEPTH]) {
        t->complete[t->done % FSDPI_RAILS_DEPTH] = false;
        rails->leaving -= row < rails->n_in_turns ? fsdpi_rails_chunk_bytes(request, t, t->done) : 0;
        t->done++;
        if (row >= rails->n_sends) {
            fsdpi_rails_begin_arrival(request, row);
        }
    }
}

/* Forgets those that are over: MPI has made their requests null. */
static void close_ranks(fsdpi_rails *rails)
{
    int kept = 0;

    for (int i = 0; i < rails->n_messages; i++) {
        if (rails->messages[i] != MPI_REQUEST_NULL) {
            rails->messages[kept] = rails->messages[i];
            rails->numbers[kept]  = rails->numbers[i];
            kept++;
        }
    }
    rails->n_messages = kept;
}

fsdp_status fsdpi_rails_look_at_messages(fsdp_request *request, bool *moved)
{
    fsdp_context *ctx   = request->ctx;
    fsdpi_rails  *rails = &ctx->rails;
    int           n     = 0;

    if (rails->n_messages == 0) {
        return FSDP_OK;
    }
    FSDPI_TRY_MPI(ctx, MPI_Testsome(rails->n_messages, rails->messages, &n, rails->completed, MPI_STATUSES_IGNORE));
    if (n == MPI_UNDEFINED || n == 0) {
        return FSDP_OK;
    }
    for (int i = 0; i < n; i++) {
        note_complete(request, rails->numbers[rails->completed[i]]);
    }
    close_ranks(rails);
    *moved = true;
    return FSDP_OK;
}
