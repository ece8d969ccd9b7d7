#include "collectives/rails/schedule.h"

#include <stdint.h>

#include "collectives/rails/chunks.h"
#include "collectives/rails/route.h"
#include "lib/context/context.h"

/* Of rounds: a part is done with before the next one begins. */
static const size_t WHOLE_PART = SIZE_MAX;

fsdpi_seat fsdpi_rails_seat(const fsdpi_nodes *nodes, int position)
{
    return (fsdpi_seat){.rank = fsdpi_rank_at(nodes, nodes->mine, position), .node = nodes->mine, .position = position};
}

fsdpi_slice fsdpi_rails_part(const fsdp_request *request, int rank)
{
    if ((request->ctx->rails.route & FSDPI_WHOLE) != 0) {
        return (fsdpi_slice){.begin = 0, .count = request->call.count};
    }
    if ((request->ctx->rails.route & FSDPI_COLLECTS) != 0) {
        return fsdpi_even_slice(request->call.count, request->ctx->size, rank);
    }
    if (request->call.division == FSDPI_DIVISION_COUNTS && request->call.counts != NULL && request->scratch != NULL) {
        const size_t *begins = (const size_t *)(const void *)request->scratch;

        return (fsdpi_slice){.begin = begins[rank], .count = request->call.counts[rank]};
    }
    return fsdpi_slice_of(request, rank);
}

/* The rank of a node that deals with a part whose owner is on another node. */
static int dealer(const fsdpi_nodes *nodes, int node, int part)
{
    return fsdpi_rank_at(nodes, node, fsdpi_position_of(nodes, part) % fsdpi_node_size(nodes, node));
}

/* The rank of a node that first has a part there. */
static int holder(const fsdpi_nodes *nodes, int node, int part)
{
    return fsdpi_node_of(nodes, part) == node ? part : dealer(nodes, node, part);
}

static int node_after(const fsdpi_nodes *nodes, int node, int k)
{
    return (node + k + nodes->count) % nodes->count;
}

/* Of the other nodes in their order, the one at a step from 1 on. */
static int other_node(int node, int step)
{
    return step <= node ? step - 1 : step;
}

/* The rank that a seat deals with for its node, of those on another one. False: there are not so many. */
static bool find_dealt(const fsdpi_nodes *nodes, const fsdpi_seat *seat, int node, int turn, int *rank)
{
    const int position = seat->position + turn * fsdpi_node_size(nodes, seat->node);

    if (position >= fsdpi_node_size(nodes, node)) {
        return false;
    }
    *rank = fsdpi_rank_at(nodes, node, position);
    return true;
}

/* ---- with whom at a step, and whose part -------------------------------------------------------------------------- */

static bool partials_out(const fsdp_request *request, const fsdpi_seat *seat, int step, int turn, fsdpi_cursor *c)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;
    const int to = request->ctx->rails.is_ordered ? other_node(seat->node, step) : node_after(nodes, seat->node, step);

    if (!find_dealt(nodes, seat, to, turn, &c->part)) {
        return false;
    }
    c->peer = c->part;
    return true;
}

static bool partials_in(const fsdp_request *request, const fsdpi_seat *seat, int step, int turn, fsdpi_cursor *c)
{
    c->part = seat->rank;
    c->peer = dealer(&request->ctx->nodes, other_node(seat->node, step), seat->rank);
    return turn == 0;
}

static bool parts_out(const fsdp_request *request, const fsdpi_seat *seat, int step, int turn, fsdpi_cursor *c)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;

    c->part = seat->rank;
    c->peer = dealer(nodes, node_after(nodes, seat->node, step), seat->rank);
    return turn == 0;
}

static bool parts_in(const fsdp_request *request, const fsdpi_seat *seat, int step, int turn, fsdpi_cursor *c)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;

    if (!find_dealt(nodes, seat, node_after(nodes, seat->node, -step), turn, &c->part)) {
        return false;
    }
    c->peer = c->part;
    return true;
}

/* First this rank's own part, then what has come from the node before, in the order in which it comes. */
static bool ring_out(const fsdp_request *request, const fsdpi_seat *seat, int step, int turn, fsdpi_cursor *c)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;

    c->part = seat->rank;
    if (step == 0 ? turn > 0 : !find_dealt(nodes, seat, node_after(nodes, seat->node, -step), turn, &c->part)) {
        return false;
    }
    c->peer = dealer(nodes, node_after(nodes, seat->node, 1), c->part);
    return true;
}

static bool ring_in(const fsdp_request *request, const fsdpi_seat *seat, int step, int turn, fsdpi_cursor *c)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;

    if (!find_dealt(nodes, seat, node_after(nodes, seat->node, -step), turn, &c->part)) {
        return false;
    }
    c->peer = holder(nodes, node_after(nodes, seat->node, -1), c->part);
    return true;
}

static bool to_root(const fsdp_request *request, const fsdpi_seat *seat, int step, int turn, fsdpi_cursor *c)
{
    (void)step;
    c->part = seat->rank;
    c->peer = request->call.root;
    return turn == 0;
}

static bool at_root(const fsdp_request *request, const fsdpi_seat *seat, int step, int turn, fsdpi_cursor *c)
{
    c->peer = c->part = (seat->rank + step) % request->ctx->size;
    return turn == 0;
}

static bool blocks_out(const fsdp_request *request, const fsdpi_seat *seat, int step, int turn, fsdpi_cursor *c)
{
    c->peer = c->part = (seat->rank + step) % request->ctx->size;
    return turn == 0;
}

static bool blocks_in(const fsdp_request *request, const fsdpi_seat *seat, int step, int turn, fsdpi_cursor *c)
{
    c->peer = c->part = (seat->rank - step + request->ctx->size) % request->ctx->size;
    return turn == 0;
}

/* ---- streams --------------------------------------------------------------------------------------------------------- */

/* The steps of a stream, and what each of them is; a round is as many chunks of each part. */
typedef struct fsdpi_course {
    int    first, last;
    size_t round;
    bool (*at)(const fsdp_request *request, const fsdpi_seat *seat, int step, int turn, fsdpi_cursor *cursor);
} fsdpi_course;

static fsdpi_course course_of(const fsdp_request *request, const fsdpi_seat *seat, fsdpi_stream_kind kind)
{
    const fsdp_context *ctx   = request->ctx;
    const unsigned      route = ctx->rails.route;
    const int           last  = ctx->nodes.count - 1;
    const bool          out = kind == FSDPI_PARTS_OUT, is_root = seat->rank == request->call.root;

    switch (kind) {
    case FSDPI_PARTIALS_OUT:
        return (fsdpi_course){1, last, ctx->rails.in_turn, partials_out};
    case FSDPI_PARTIALS_IN:
        return (fsdpi_course){1, last, 1, partials_in};
    default:
        break;
    }
    if ((route & FSDPI_EXCHANGES) != 0) {
        return (fsdpi_course){1, ctx->size - 1, WHOLE_PART, out ? blocks_out : blocks_in};
    }
    if ((route & FSDPI_COLLECTS) != 0) {
        return out ? (fsdpi_course){1, is_root ? 0 : 1, 1, to_root}
                   : (fsdpi_course){1, is_root ? ctx->size - 1 : 0, 1, at_root};
    }
    if ((route & FSDPI_AROUND) != 0) {
        return (fsdpi_course){out ? 0 : 1, out ? last - 1 : last, WHOLE_PART, out ? ring_out : ring_in};
    }
    return (fsdpi_course){1, last, 1, out ? parts_out : parts_in};
}

static size_t first_chunk(const fsdpi_course *course, size_t round)
{
    return course->round == WHOLE_PART ? 0 : round * course->round;
}

/* The chunks of a part that are in the present round. */
static void enter_part(const fsdp_request *request, const fsdpi_course *course, fsdpi_cursor *cursor)
{
    const fsdpi_slice part   = fsdpi_rails_part(request, cursor->part);
    const size_t      chunks = fsdpi_rails_chunks(request, part.count), first = first_chunk(course, cursor->round);
    const size_t      left = chunks > first ? chunks - first : 0;

    cursor->begin = part.begin;
    cursor->count = part.count;
    cursor->chunk = first;
    cursor->end   = first + (left < course->round ? left : course->round);
}

static bool is_behind_the_last_round(const fsdp_request *request, const fsdpi_course *course, size_t round)
{
    return course->round == WHOLE_PART ? round > 0 : first_chunk(course, round) >= request->ctx->rails.most;
}

/* The next part of this round, or the first one of the next. */
static bool next_part(const fsdp_request *request, const fsdpi_seat *seat, const fsdpi_course *course,
                      fsdpi_cursor *cursor)
{
    if (cursor->open) {
        cursor->turn++;
    } else {
        *cursor = (fsdpi_cursor){.open = true, .step = course->first};
    }
    while (!is_behind_the_last_round(request, course, cursor->round)) {
        if (cursor->step > course->last) {
            cursor->round++;
            cursor->step = course->first;
            cursor->turn = 0;
        } else if (course->at(request, seat, cursor->step, cursor->turn, cursor)) {
            enter_part(request, course, cursor);
            return true;
        } else {
            cursor->step++;
            cursor->turn = 0;
        }
    }
    return false;
}

bool fsdpi_rails_next(const fsdp_request *request, const fsdpi_seat *seat, fsdpi_stream_kind kind, fsdpi_cursor *cursor,
                      fsdpi_parcel *parcel)
{
    const fsdpi_course course = course_of(request, seat, kind);

    while (!cursor->open || cursor->chunk == cursor->end) {
        if (!next_part(request, seat, &course, cursor)) {
            return false;
        }
    }
    const fsdpi_slice c = fsdpi_rails_chunk_of(request, cursor->begin, cursor->count, cursor->chunk);
    *parcel             = (fsdpi_parcel){.peer  = cursor->peer,
                                         .part  = cursor->part,
                                         .begin = c.begin,
                                         .count = c.count,
                                         .first = cursor->chunk == first_chunk(&course, cursor->round)};
    cursor->chunk++;
    return true;
}
