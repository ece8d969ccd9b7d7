#include "collectives/rails/messages.h"

#include <stdint.h>

#include "collectives/rails/ops.h"
#include "collectives/rails/places.h"
#include "collectives/rails/route.h"
#include "collectives/rails/schedule.h"
#include "collectives/rails/work.h"
#include "lib/base/clock.h"
#include "lib/context/context.h"
#include "lib/sync/messages.h"

static int tag_of(const fsdp_request *request, fsdpi_stream_kind kind)
{
    if ((request->ctx->rails.route & FSDPI_EXCHANGES) != 0) {
        return FSDPI_TAG_BLOCKS;
    }
    return kind == FSDPI_PARTIALS_OUT || kind == FSDPI_PARTIALS_IN ? FSDPI_TAG_PARTIALS : FSDPI_TAG_PARTS;
}

/* Names the next chunk of a stream that has room for one more. */
static bool take(fsdp_request *request, fsdpi_stream_kind kind)
{
    fsdpi_stream    *stream = &request->ctx->rails.streams[kind];
    const fsdpi_seat seat   = fsdpi_rails_seat(&request->ctx->nodes, request->ctx->nodes.position);

    if (stream->named || stream->taken - stream->released == stream->window) {
        return false;
    }
    stream->named =
        !fsdpi_rails_next(request, &seat, kind, &stream->next, fsdpi_rails_parcel(request, kind, stream->taken));
    stream->taken += !stream->named;
    return !stream->named;
}

/* ---- posting ------------------------------------------------------------------------------------------------------- */

/* The place of the request of one message more. */
static MPI_Request *next_message(fsdpi_rails *rails, size_t number)
{
    rails->numbers[rails->n_messages] = (uint32_t)number;
    return &rails->messages[rails->n_messages];
}

static fsdp_status post_receive(fsdp_request *request, fsdpi_stream_kind kind)
{
    fsdp_context  *ctx    = request->ctx;
    fsdpi_stream  *stream = &ctx->rails.streams[kind];
    const size_t   n      = stream->posted;
    fsdpi_parcel  *parcel = fsdpi_rails_parcel(request, kind, n);
    MPI_Request   *slot   = next_message(&ctx->rails, fsdpi_rails_number(&ctx->rails, kind, n));
    unsigned char *to     = fsdpi_rails_ops_of(request)->stages(request) ? fsdpi_rails_staged(request, kind, n)
                                                                         : fsdpi_rails_received(request, kind, n);

    FSDPI_TRY_MPI(ctx, MPI_Irecv(to, (int)fsdpi_rails_bytes(request, parcel), MPI_BYTE, parcel->peer,
                                 tag_of(request, kind), request->lane->messages.comm, slot));
    stream->posted++;
    ctx->rails.n_messages++;
    return FSDP_OK;
}

static fsdp_status post_send(fsdp_request *request, fsdpi_stream_kind kind)
{
    fsdp_context        *ctx    = request->ctx;
    fsdpi_stream        *stream = &ctx->rails.streams[kind];
    const size_t         n      = stream->posted;
    const fsdpi_parcel  *parcel = fsdpi_rails_parcel(request, kind, n);
    const size_t         bytes  = fsdpi_rails_bytes(request, parcel);
    MPI_Request         *slot   = next_message(&ctx->rails, fsdpi_rails_number(&ctx->rails, kind, n));
    const unsigned char *data   = fsdpi_rails_ops_of(request)->stages(request) ? fsdpi_rails_staged(request, kind, n)
                                                                               : fsdpi_rails_sent(request, kind, n);

    FSDPI_TRY_MPI(ctx, MPI_Isend(data, (int)bytes, MPI_BYTE, parcel->peer, tag_of(request, kind),
                                 request->lane->messages.comm, slot));
    stream->posted++;
    ctx->rails.n_messages++;
    ctx->rails.leaving += kind == FSDPI_PARTIALS_OUT ? bytes : 0;
    return FSDP_OK;
}

fsdp_status fsdpi_rails_post_receives(fsdp_request *request, bool *moved)
{
    static const fsdpi_stream_kind IN[] = {FSDPI_PARTIALS_IN, FSDPI_PARTS_IN};

    for (size_t i = 0; i < sizeof IN / sizeof IN[0]; i++) {
        while (take(request, IN[i])) {
            FSDP_TRY(post_receive(request, IN[i]));
            *moved = true;
        }
    }
    return FSDP_OK;
}

/* How many chunks of a stream there are to be sent, as far as that is known. */
static size_t available(const fsdp_request *request, fsdpi_stream_kind kind)
{
    const fsdpi_rails  *rails = &request->ctx->rails;
    const fsdpi_stream *in    = &rails->streams[FSDPI_PARTS_IN];

    if (kind == FSDPI_PARTIALS_OUT || (rails->route & FSDPI_EXCHANGES) != 0) {
        return SIZE_MAX;
    }
    if ((rails->route & FSDPI_AROUND) != 0) { /* all of this rank's own part, then what has come */
        return in->named && in->ended == in->taken ? SIZE_MAX : rails->chunks + in->ended;
    }
    const size_t receivers = (rails->route & FSDPI_COLLECTS) != 0 ? 1 : (size_t)request->ctx->nodes.count - 1;
    return (rails->route & FSDPI_REDUCES) == 0 || rails->reduced == rails->chunks ? SIZE_MAX
                                                                                  : rails->reduced * receivers;
}

/*
 * Between nodes of one size, where there are more than two, partial results are sent to one peer after the other. A
 * connection fills the link; several that carry data at once each find less of it than is free (TCP with BBR, all at once:
 * with 3, 6, 9 and 12 per link 1.08, 1.12, 1.14 and 1.18 times the bound). Where one node has more ranks than the others its
 * link is the last to be done, and all feed it all the time. A turn is of half the chunks that a receiver has places for, so
 * that it can reduce one half while the other comes; the next one comes when no more than one chunk is under way. Chunks that
 * come one by one in the order of the nodes are shorter, and more of them are under way.
 */
static bool may_leave(const fsdp_request *request, fsdpi_stream_kind kind)
{
    enum { ORDERED_AT_ONCE = 4 };

    const fsdpi_rails  *rails  = &request->ctx->rails;
    const fsdpi_stream *stream = &rails->streams[kind];
    const size_t        chunks = rails->is_ordered ? ORDERED_AT_ONCE : 1;

    return kind != FSDPI_PARTIALS_OUT || !rails->has_turns || !stream->parcels[stream->posted % stream->window].first ||
           rails->leaving <= chunks * rails->chunk * request->call.width;
}

/* Work on one chunk at a time, so that none waits for the others' reductions. `left`: so many may be sent. */
static fsdp_status send_stream(fsdp_request *request, fsdpi_stream_kind kind, size_t *left, bool *moved)
{
    fsdpi_stream *stream = &request->ctx->rails.streams[kind];
    const bool    works  = fsdpi_rails_is_work_to_send(request, kind);
    const size_t  there  = available(request, kind);

    while (stream->begun < there && take(request, kind)) {
        FSDP_TRY(fsdpi_rails_begin_send(request, kind));
        *moved = true;
        if (works) {
            break;
        }
    }
    for (; *left > 0 && stream->posted < stream->ended && may_leave(request, kind); (*left)--) {
        FSDP_TRY(post_send(request, kind));
        *moved = true;
    }
    return FSDP_OK;
}

/* ---- what has come and gone ---------------------------------------------------------------------------------------- */

static bool is_sent(fsdpi_stream_kind kind)
{
    return kind == FSDPI_PARTIALS_OUT || kind == FSDPI_PARTS_OUT;
}

/* Chunks are taken in their order, whichever was complete first. */
static void take_complete(fsdp_request *request, fsdpi_stream_kind kind)
{
    fsdpi_stream *stream = &request->ctx->rails.streams[kind];

    while (stream->done < stream->posted && fsdpi_rails_parcel(request, kind, stream->done)->complete) {
        stream->done++;
        if (is_sent(kind)) {
            stream->released++;
        } else {
            fsdpi_rails_begin_arrival(request, kind);
        }
    }
}

static void note_complete(fsdp_request *request, size_t number)
{
    fsdpi_rails            *rails  = &request->ctx->rails;
    const size_t            window = fsdpi_rails_window(request->ctx->size);
    const fsdpi_stream_kind kind   = (fsdpi_stream_kind)(number / window);
    fsdpi_parcel           *parcel = &rails->streams[kind].parcels[number % window];

    parcel->complete = true;
    rails->leaving -= kind == FSDPI_PARTIALS_OUT ? fsdpi_rails_bytes(request, parcel) : 0;
    take_complete(request, kind);
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

/* ---- sending ------------------------------------------------------------------------------------------------------- */

/* Chunks that have come. */
static size_t come(const fsdpi_rails *rails)
{
    return rails->streams[FSDPI_PARTIALS_IN].done + rails->streams[FSDPI_PARTS_IN].done;
}

/*
 * Over TCP a send is complete as soon as the system has taken it. A rank that sends one chunk after the other then looks at none
 * that has come, until the system takes no more: each waits for the other, and a link carries half of what it could both ways.
 * So one that comes is waited for after each that is sent, but not for long: Open MPI asks the system for what has come in one of 8
 * calls. Some give the core away: who then gets it back late has waited long enough.
 */
static fsdp_status let_one_come(fsdp_request *request, bool *moved)
{
    enum { CALLS = 8 };
    static const double LONGEST = 20e-6, LATE = 1e-3; /* more than it takes to read what has come */
    fsdpi_rails        *rails  = &request->ctx->rails;
    const size_t        before = come(rails);
    const double        begin  = fsdpi_seconds();
    double              passed = 0;

    if (!fsdpi_may_give_way(&rails->giving_way)) {
        return FSDP_OK;
    }
    for (int i = 0; i < CALLS && passed < LONGEST && come(rails) == before; i++) {
        FSDP_TRY(fsdpi_rails_look_at_messages(request, moved));
        passed = fsdpi_seconds() - begin;
    }
    fsdpi_gave_way(&rails->giving_way, passed > LATE);
    return FSDP_OK;
}

fsdp_status fsdpi_rails_post_sends(fsdp_request *request, bool *moved)
{
    const size_t at_once = request->ctx->rails.at_once;
    size_t       left    = at_once;

    FSDP_TRY(send_stream(request, FSDPI_PARTIALS_OUT, &left, moved));
    FSDP_TRY(send_stream(request, FSDPI_PARTS_OUT, &left, moved));
    return left < at_once && at_once != SIZE_MAX ? let_one_come(request, moved) : FSDP_OK;
}
