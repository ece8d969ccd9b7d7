#include "collectives/blocks/staged.h"

#include "collectives/blocks/publish.h"
#include "collectives/blocks/take.h"
#include "collectives/reach/mover.h"
#include "collectives/reach/pieces.h"
#include "lib/sync/exchange.h"

/* Up to how many ranks an allreduce has each rank reduce everything: the second pass that it saves costs more. */
enum { FEW_RANKS = 3 };

/* The steps of a block. */
enum { PUBLISH, PUBLISHING, ARRIVE, RECORDING, ASK_NODES, AWAIT_LEADER, TAKE };

/* BYTES of the longest record of any node: all are taken for equally long, so that they may be cut into messages. */
static size_t record_bytes(const fsdp_request *request, fsdpi_pattern pattern, const fsdpi_block *b)
{
    size_t most = 0;

    if (pattern != FSDPI_GATHER) {
        return fsdpi_packed_count(request, pattern, b) * request->call.width;
    }
    for (int m = 0; m < request->ctx->nodes.count; m++) {
        const size_t bytes = fsdpi_gathered_bytes(request, b, m);
        most               = bytes > most ? bytes : most;
    }
    return most;
}

static void begin_records(const fsdpi_published *from, fsdpi_pattern pattern, const fsdpi_block *b)
{
    fsdpi_record_head *head = fsdpi_exchange_begin(&from->request->lane->exchange);

    *head = (fsdpi_record_head){.all.flags = FSDPI_FLAG_SAME | FSDPI_FLAG_OFFERED};
    (void)fsdpi_fill_record(from, pattern, b, fsdpi_mover_of(from->request)->in_mailbox(from->request, head + 1));
    head->bytes = record_bytes(from->request, pattern, b);
}

static fsdp_status ask_nodes(fsdp_request *request, fsdpi_progress *progress)
{
    fsdpi_lane *lane = request->lane;

    FSDP_TRY(fsdpi_exchange_advance(&lane->exchange, true, progress));
    if (*progress == FSDPI_FINISHED) {
        fsdpi_mailbox_tell(&lane->box, lane->box.number, fsdpi_exchange_opinion(&lane->exchange));
        request->step = TAKE;
        *progress     = FSDPI_MOVED;
    }
    return FSDP_OK;
}

static void post_block(fsdp_request *request)
{
    fsdp_context *ctx = request->ctx;

    fsdpi_mailbox_post(&request->lane->box,
                       fsdpi_letter_of(&request->lane->box, ctx->nodes.position, request->lane->box.number + 1),
                       request->lane->box.number + 1);
    request->step = ARRIVE;
}

static void publish_block(fsdp_request *request, fsdpi_pattern pattern, const fsdpi_block *b)
{
    const fsdp_context     *ctx    = request->ctx;
    const fsdpi_blocks_ops *ops    = fsdpi_blocks_ops_of(request);
    const uint64_t          number = request->lane->box.number + 1;

    ops->begin_publishing(request, number);
    fsdpi_publish(request, pattern, b, ops->slot(request, ctx->nodes.position, number));
    request->step = PUBLISHING;
    if (ops->end_publishing(request, number)) {
        post_block(request);
    }
}

/* Whether all blocks of the node are there; or, on a rank that waits for its leader, whether it need not look for more. */
static bool have_arrived(fsdp_request *request)
{
    fsdpi_mailbox *box = &request->lane->box;

    return box->nodes->count == 1 ? fsdpi_mailbox_arrived(box, box->number) : fsdpi_mailbox_heard(box, box->number);
}

static void all_have_arrived(const fsdpi_published *from, fsdpi_pattern pattern, const fsdpi_block *b)
{
    fsdp_request      *request = from->request;
    const fsdpi_nodes *nodes   = &request->ctx->nodes;

    request->step = nodes->count == 1 ? TAKE : nodes->position == 0 ? RECORDING : AWAIT_LEADER;
    if (request->step != AWAIT_LEADER) {
        fsdpi_blocks_ops_of(request)->begin_taking(request, from->number);
    }
    if (request->step == RECORDING) {
        begin_records(from, pattern, b);
    }
}

static bool has_been_told(const fsdpi_published *from)
{
    fsdp_request *request = from->request;

    if (!fsdpi_mailbox_told(&request->lane->box, from->number)) {
        return false;
    }
    fsdpi_blocks_ops_of(request)->begin_taking(request, from->number);
    request->step = TAKE;
    return true;
}

/* Whether what was begun in the step before is done. */
static bool is_done(fsdp_request *request, fsdpi_progress *progress)
{
    const bool done = fsdpi_blocks_ops_of(request)->is_done(request);

    *progress = done ? FSDPI_MOVED : FSDPI_WAITING;
    return done;
}

static void take_block(const fsdpi_published *from, fsdpi_pattern pattern, const fsdpi_block *b)
{
    fsdp_request *request = from->request;

    fsdpi_take(from, pattern, b);
    fsdpi_blocks_ops_of(request)->end_taking(request, from->number);
    request->at++;
    request->step = PUBLISH;
}

fsdp_status fsdpi_blocks_advance(fsdp_request *request, fsdpi_pattern pattern, fsdpi_progress *progress)
{
    const fsdpi_published from = {.request = request, .number = request->lane->box.number};
    fsdpi_block           b;

    *progress = FSDPI_FINISHED;
    if (!fsdpi_block_at(request, pattern, request->at, &b)) {
        return FSDP_OK;
    }
    *progress = FSDPI_MOVED;
    switch (request->step) {
    case PUBLISH:
        publish_block(request, pattern, &b);
        break;
    case ARRIVE:
        if (!have_arrived(request)) {
            *progress = FSDPI_WAITING;
        } else {
            all_have_arrived(&from, pattern, &b);
        }
        break;
    case PUBLISHING:
        if (is_done(request, progress)) {
            post_block(request);
        }
        break;
    case RECORDING:
        if (is_done(request, progress)) {
            request->step = ASK_NODES;
        }
        break;
    case ASK_NODES:
        return ask_nodes(request, progress);
    case AWAIT_LEADER:
        *progress = has_been_told(&from) ? FSDPI_MOVED : FSDPI_WAITING;
        break;
    default:
        take_block(&from, pattern, &b);
        break;
    }
    return FSDP_OK;
}

void fsdpi_begin_gathering(fsdp_request *request)
{
    request->call.in = fsdpi_own_result(request);
    request->stage   = 1;
    request->at      = 0;
}

static fsdp_status advance_stages(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdpi_pattern pattern = fsdpi_pattern_of(request);
    const fsdpi_nodes  *nodes   = &request->ctx->nodes;

    if (pattern != FSDPI_COMBINE || (nodes->count == 1 && nodes->size <= FEW_RANKS)) {
        return fsdpi_blocks_advance(request, pattern, progress);
    }
    FSDP_TRY(fsdpi_blocks_advance(request, request->stage == 0 ? FSDPI_SCATTER : FSDPI_GATHER, progress));
    if (*progress == FSDPI_FINISHED && request->stage == 0) {
        fsdpi_begin_gathering(request);
        *progress = FSDPI_MOVED;
    }
    return FSDP_OK;
}

fsdp_status fsdpi_staged_advance(fsdp_request *request, fsdpi_progress *progress)
{
    FSDP_TRY(advance_stages(request, progress));
    if (*progress == FSDPI_FINISHED && !fsdpi_blocks_ops_of(request)->is_over(request)) {
        *progress = FSDPI_WAITING;
    }
    return FSDP_OK;
}

void fsdpi_staged_end(fsdp_request *request)
{
    if (fsdpi_pattern_of(request) == FSDPI_SCATTER) {
        fsdpi_settle(request);
    }
}

/* Its ranks leave together since the output may be one for the node: see collectives/select/select_algorithm.c. */
const fsdpi_algorithm fsdpi_staged = {
    .name = "staged", .advance = fsdpi_staged_advance, .end = fsdpi_staged_end, .leaves_together = true};
