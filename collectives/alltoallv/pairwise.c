/*
 * Alltoallv: first every rank tells every other one what it sends there, from which place, and what it expects; then blocks are
 * read where they lie, from peers on the node whose memory can be read, and otherwise go from rank to rank in messages. In round k
 * a rank sends to the k-th one behind it and receives from the k-th one before it, some rounds at a time. Blocks of which the two
 * ranks say different counts are not moved, and the agreement at the end tells everybody.
 * Cost for S bytes on N ranks: 2 (N-1) alpha + (24 (N-1) + (N-1)/N S) beta; on a node of ranks that can be read 2 S of memory traffic.
 */
#include <string.h>

#include "collectives/alltoallv/alltoallv.h"
#include "collectives/alltoallv/notices.h"
#include "collectives/reach/reach.h"
#include "lib/context/context.h"

enum { ROUNDS_AT_ONCE = 16 };
enum { TELL, COPY, EXCHANGE }; /* request->stage; `at` counts rounds, or BYTES of the block that is copied */

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static int receiver_in(const fsdp_request *request, int round)
{
    return (request->ctx->rank + round) % request->ctx->size;
}

static int sender_in(const fsdp_request *request, int round)
{
    return (request->ctx->rank + request->ctx->size - round) % request->ctx->size;
}

static int rounds_end(const fsdp_request *request)
{
    const int left = request->ctx->size - (int)request->at;

    return (int)request->at + (left < ROUNDS_AT_ONCE ? left : ROUNDS_AT_ONCE);
}

/* Whether a peer's memory is read, and this rank's by that. */
static bool is_read(const fsdp_request *request, int peer)
{
    const fsdp_context *ctx = request->ctx;

    return peer == ctx->rank || ((request->flags & FSDPI_FLAG_PLACES) != 0 &&
                                 ((request->flags & FSDPI_FLAG_SYMMETRIC) != 0 || ctx->peers.readable) &&
                                 fsdpi_is_on_node(&ctx->nodes, peer));
}

static fsdp_status post_notices(fsdp_request *request, int round)
{
    fsdpi_messages *messages = &request->lane->messages;
    const int       to = receiver_in(request, round), from = sender_in(request, round);

    FSDP_TRY(fsdpi_post_receive(messages, fsdpi_notice_from(request, from), sizeof(fsdpi_alltoallv_notice), from,
                                FSDPI_TAG_PARTS));
    return fsdpi_post_send(messages, fsdpi_notice_to(request, to), sizeof(fsdpi_alltoallv_notice), to, FSDPI_TAG_PARTS);
}

static fsdp_status post_blocks(fsdp_request *request, int round)
{
    const fsdpi_call             *call     = &request->call;
    fsdpi_messages               *messages = &request->lane->messages;
    const int                     to = receiver_in(request, round), from = sender_in(request, round);
    const fsdpi_alltoallv_notice *out = fsdpi_notice_to(request, to), *in = fsdpi_notice_from(request, from);

    if (!is_read(request, from) && in->sends == fsdpi_notice_to(request, from)->expects) {
        unsigned char *place = (unsigned char *)call->out + call->blocks[FSDPI_RECEIVE_PLACES][from] * call->width;
        FSDP_TRY(fsdpi_post_receive(messages, place, in->sends * call->width, from, FSDPI_TAG_BLOCKS));
    }
    if (!is_read(request, to) && out->sends == fsdpi_notice_from(request, to)->expects) {
        FSDP_TRY(fsdpi_post_send(messages, (const unsigned char *)call->in + out->place, out->sends * call->width, to,
                                 FSDPI_TAG_BLOCKS));
    }
    return FSDP_OK;
}

/* Posts some rounds and waits for them. `step`: they are posted. */
static fsdp_status advance_rounds(fsdp_request   *request, fsdp_status (*post)(fsdp_request *request, int round),
                                  fsdpi_progress *progress)
{
    const int end      = rounds_end(request);
    bool      complete = true;

    for (int round = (int)request->at; request->step == 0 && round < end; round++) {
        FSDP_TRY(post(request, round));
    }
    request->step = 1;
    FSDP_TRY(fsdpi_messages_complete(&request->lane->messages, &complete));
    *progress = complete ? FSDPI_MOVED : FSDPI_WAITING;
    if (complete) {
        request->at   = (size_t)end;
        request->step = 0;
    }
    return FSDP_OK;
}

/* ---- blocks of the node ------------------------------------------------------------------------------------------ */

static fsdp_status copy_piece(fsdp_request *request, int position, int peer, size_t bytes)
{
    const fsdpi_call *call = &request->call;
    unsigned char    *to   = (unsigned char *)call->out + call->blocks[FSDPI_RECEIVE_PLACES][peer] * call->width;
    const size_t      from = fsdpi_notice_from(request, peer)->place + request->at;

    if (peer == request->ctx->rank) {
        memcpy(to + request->at, (const unsigned char *)call->in + from, bytes);
        return FSDP_OK;
    }
    return fsdpi_fetch(request, position, FSDPI_INPUT, from, to + request->at, bytes);
}

/* `step` counts peers, `at` the BYTES that have come of the present one's block. */
static fsdp_status copy_blocks(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdpi_nodes *nodes = &request->ctx->nodes;
    size_t             moved = 0;

    while (request->step < nodes->size && moved < FSDPI_STEP_BYTES) {
        const int                     position = (nodes->position + request->step) % nodes->size;
        const int                     peer     = fsdpi_rank_at(nodes, nodes->mine, position);
        const fsdpi_alltoallv_notice *in       = fsdpi_notice_from(request, peer);
        const bool   is_due = is_read(request, peer) && in->sends == fsdpi_notice_to(request, peer)->expects;
        const size_t left   = is_due ? in->sends * request->call.width - request->at : 0;
        const size_t now    = left < FSDPI_STEP_BYTES ? left : FSDPI_STEP_BYTES;

        if (now > 0) {
            FSDP_TRY(copy_piece(request, position, peer, now));
        }
        moved += now;
        request->at = now < left ? request->at + now : 0;
        request->step += now == left;
    }
    *progress = FSDPI_MOVED;
    return FSDP_OK;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static fsdp_status advance_stage(fsdp_request *request, fsdpi_progress *progress)
{
    switch (request->stage) {
    case TELL:
        return advance_rounds(request, post_notices, progress);
    case COPY:
        return copy_blocks(request, progress);
    default:
        return advance_rounds(request, post_blocks, progress);
    }
}

static bool is_stage_over(const fsdp_request *request)
{
    return request->stage == COPY ? request->step == request->ctx->nodes.size
                                  : request->step == 0 && request->at >= (size_t)request->ctx->size;
}

/* Rounds are counted from 1: in round 0 a rank would meet itself. */
static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    if (request->stage == TELL && request->at == 0) {
        request->at = 1;
    }
    *progress = FSDPI_MOVED;
    if (!is_stage_over(request)) {
        FSDP_TRY(advance_stage(request, progress));
    }
    if (!is_stage_over(request)) {
        return FSDP_OK;
    }
    if (request->stage == TELL) {
        fsdpi_compare_counts(request);
    }
    if (request->stage == EXCHANGE) {
        *progress = FSDPI_FINISHED;
        return FSDP_OK;
    }
    request->stage++;
    request->step = 0;
    request->at   = request->stage == EXCHANGE ? 1 : 0;
    *progress     = FSDPI_MOVED;
    return FSDP_OK;
}

static void awaited(const fsdp_request *request, fsdpi_rank_list *list)
{
    for (int round = (int)request->at; request->stage != COPY && request->step == 1 && round < rounds_end(request);
         round++) {
        fsdpi_rank_list_add(list, sender_in(request, round));
    }
}

const fsdpi_algorithm fsdpi_alltoallv_pairwise = {
    .name = "pairwise", .advance = advance, .awaited = awaited, .agrees_at_end = true};
