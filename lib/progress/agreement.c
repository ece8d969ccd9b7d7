#include "lib/progress/agreement.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "lib/base/yielding.h"
#include "lib/progress/inquest.h"

/* ---- what is called ---------------------------------------------------------------------------------------------- */

/* The arguments of fixed size, as they are. */
static uint64_t packed(const fsdpi_call *call)
{
    const uint64_t id    = call->collective != NULL ? (uint64_t)call->collective->id : 0;
    const uint64_t dtype = call->has_data ? (uint64_t)call->dtype & 0xff : 0;
    const uint64_t op    = call->has_op ? (uint64_t)call->op & 0xff : 0;
    const uint64_t root  = call->has_root ? (uint64_t)(uint32_t)call->root : 0;

    return (uint64_t)call->on_device << 63 | id << 48 | dtype << 40 | op << 32 | root;
}

/* All others. The name of a public collective is its id. */
static uint64_t fingerprint(const fsdpi_engine *engine, const fsdpi_call *call)
{
    uint64_t hash = fsdpi_hash_word(call->salt, call->count);

    if (call->collective == NULL || call->is_step) {
        hash = fsdpi_hash_text(hash, call->name);
    }
    if (call->label != NULL) {
        hash = fsdpi_hash_text(hash, call->label);
    }
    if (call->division == FSDPI_DIVISION_COUNTS && call->counts != NULL) {
        hash = fsdpi_hash_bytes(hash, call->counts, (size_t)engine->core->size * sizeof *call->counts) + 1;
    }
    return hash;
}

/* ---- agreement --------------------------------------------------------------------------------------------------- */

const fsdpi_letter *fsdpi_letter_from(const fsdp_request *request, int position)
{
    return fsdpi_letter_of(request->engine->box, position, request->number);
}

void fsdpi_agreement_post(fsdp_request *request)
{
    const fsdpi_engine *engine = request->engine;
    fsdpi_mailbox      *box    = engine->box;
    const fsdpi_call   *call   = &request->call;
    const uint64_t      number = box->number + 1;
    fsdpi_letter       *letter = fsdpi_letter_of(box, engine->nodes->position, number);

    letter->call        = packed(call);
    letter->fingerprint = fingerprint(engine, call);
    letter->status      = request->verdict.status;
    letter->flags       = 0;
    request->number     = number;
    if (call->collective != NULL && call->collective->offer != NULL && letter->status == FSDP_OK && !request->closing) {
        letter->flags = call->collective->offer(request, letter);
    }
    fsdpi_mailbox_post(box, letter, number);
}

static fsdpi_opinion opinion_of_rank(const fsdp_request *request, int position)
{
    const fsdpi_letter *letter = fsdpi_letter_from(request, position);

    return (fsdpi_opinion){letter->call, letter->fingerprint, letter->flags | FSDPI_FLAG_SAME, letter->status};
}

static fsdpi_opinion opinion_of_node(const fsdp_request *request)
{
    const fsdpi_nodes *nodes = request->engine->nodes;
    fsdpi_opinion      all   = opinion_of_rank(request, nodes->position);

    for (int p = 0; p < nodes->size; p++) {
        const fsdpi_opinion one = opinion_of_rank(request, p);
        fsdpi_join(&all, &one);
    }
    return all;
}

static fsdp_status conclude(fsdp_request *request, fsdpi_opinion all, fsdpi_progress *progress, bool *agreed)
{
    const fsdpi_engine *engine = request->engine;

    *progress = FSDPI_MOVED;
    if (fsdpi_is_consent(&all)) {
        request->flags = all.flags;
        *agreed        = true;
        return FSDP_OK;
    }
    if (request->verdict.status == FSDP_OK) {
        fsdpi_describe(&request->call, engine->core->size, request->verdict.text, sizeof request->verdict.text);
    }
    if (request->closing && request->ops != NULL && request->ops->abandon != NULL) {
        request->ops->abandon(request);
    }
    atomic_store(&request->state, FSDPI_REQUEST_EXCHANGING_DETAILS);
    fsdpi_summarize(&request->verdict, &engine->verdicts->all);
    return fsdpi_post_allreduce(engine->messages, &engine->verdicts->all, engine->verdicts->type, engine->verdicts->op);
}

/* The leader has the letters of its node: writes its record for the others. */
static void ask_nodes(fsdp_request *request, fsdpi_opinion node)
{
    fsdpi_record_head *record = fsdpi_exchange_begin(request->engine->exchange);

    *record = (fsdpi_record_head){.all = node};
    if (fsdpi_carries(&node)) {
        record->bytes = request->call.collective->record(request, (unsigned char *)(record + 1));
    }
    atomic_store(&request->state, FSDPI_REQUEST_ASKING_NODES);
}

static fsdp_status arriving(fsdp_request *request, fsdpi_progress *progress, bool *agreed)
{
    const fsdpi_engine *engine = request->engine;

    if (!fsdpi_mailbox_arrived(request->engine->box, request->number)) {
        return FSDP_OK;
    }
    if (engine->nodes->count == 1) {
        return conclude(request, opinion_of_node(request), progress, agreed);
    }
    *progress = FSDPI_MOVED;
    if (engine->nodes->position == 0) {
        ask_nodes(request, opinion_of_node(request));
    } else {
        atomic_store(&request->state, FSDPI_REQUEST_AWAITING_LEADER);
    }
    return FSDP_OK;
}

static fsdp_status asking_nodes(fsdp_request *request, fsdpi_progress *progress, bool *agreed)
{
    const fsdpi_engine *engine = request->engine;

    FSDP_TRY(fsdpi_exchange_advance(engine->exchange, false, progress));
    if (*progress != FSDPI_FINISHED) {
        return FSDP_OK;
    }
    if (!fsdpi_inquest_lets_end(request->queue, request)) {
        *progress = FSDPI_WAITING;
        return FSDP_OK;
    }
    const fsdpi_opinion all   = *fsdpi_exchange_opinion(engine->exchange);
    fsdpi_letter       *board = &engine->box->desks[0]->board[request->number & 1];
    board->flags              = all.flags;
    board->status             = all.status;
    atomic_store_explicit(&board->number, request->number, memory_order_release);
    fsdpi_mailbox_wake(engine->box);
    return conclude(request, all, progress, agreed);
}

static fsdp_status awaiting_leader(fsdp_request *request, fsdpi_progress *progress, bool *agreed)
{
    const fsdpi_engine *engine = request->engine;
    fsdpi_desk         *leader = engine->box->desks[0];
    const fsdpi_letter *board  = &leader->board[request->number & 1];

    if (!fsdpi_word_reached(engine->box, leader, &board->number, request->number)) {
        return FSDP_OK;
    }
    return conclude(request, (fsdpi_opinion){.flags = board->flags, .status = board->status}, progress, agreed);
}

fsdp_status fsdpi_agreement_advance(fsdp_request *request, fsdpi_progress *progress, bool *agreed)
{
    *progress = FSDPI_WAITING;
    switch (atomic_load_explicit(&request->state, memory_order_relaxed)) {
    case FSDPI_REQUEST_ASKING_NODES:
        return asking_nodes(request, progress, agreed);
    case FSDPI_REQUEST_AWAITING_LEADER:
        return awaiting_leader(request, progress, agreed);
    default:
        return arriving(request, progress, agreed);
    }
}

/* ---- no agreement ------------------------------------------------------------------------------------------------ */

/* A mismatch is logged here, once; who has bad arguments has logged that itself. */
static fsdp_status common_failure(const fsdpi_engine *engine)
{
    const fsdp_status status = fsdpi_verdicts_error(&engine->verdicts->all, engine->core->ctx);

    if (engine->verdicts->all.failed == 0 && engine->core->rank == 0) {
        fsdpi_log(engine->core->ctx, FSDP_LOG_ERROR, "%s (%s)", fsdpi_error_recorded(engine->core->ctx),
                  fsdp_status_name(status));
    }
    return status;
}

fsdp_status fsdpi_details_advance(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdpi_engine *engine = request->engine;
    bool                complete;

    FSDP_TRY(fsdpi_messages_complete(engine->messages, &complete));
    *progress = FSDPI_WAITING;
    if (!complete) {
        return FSDP_OK;
    }
    return common_failure(engine);
}

/*
 * Whether all have come with the same `salt`, and none with an error. The largest of h and of ~h over all ranks are
 * complements of each other just where all h are equal.
 */
static fsdp_status compare_by_mpi(const fsdpi_engine *engine, fsdp_status status, uint64_t salt, bool *agreed)
{
    uint64_t words[] = {salt, ~salt, status != FSDP_OK};

    FSDPI_TRY_MPI(engine->core->ctx, fsdpi_mpi_allreduce(words, 3, MPI_UINT64_T, MPI_MAX, engine->core->comm,
                                                         engine->core->config.timeout_s));
    *agreed = words[0] == ~words[1] && words[2] == 0;
    return FSDP_OK;
}

fsdp_status fsdpi_agree_by_mpi(const fsdpi_engine *engine, fsdp_status status, const char *text, uint64_t salt)
{
    const fsdpi_core *core   = engine->core;
    fsdpi_verdict     mine   = {.status = (int32_t)status, .place = core->rank, .rank = core->rank};
    bool              agreed = false;

    FSDP_TRY(compare_by_mpi(engine, status, salt, &agreed));
    if (agreed) {
        return FSDP_OK;
    }
    (void)snprintf(mine.text, sizeof mine.text, "%.*s", FSDPI_DETAIL_BYTES - 1,
                   status != FSDP_OK ? fsdpi_error_recorded(core->ctx) : text);
    fsdpi_summarize(&mine, &engine->verdicts->all);
    FSDPI_TRY_MPI(core->ctx, fsdpi_mpi_allreduce(&engine->verdicts->all, 1, engine->verdicts->type,
                                                 engine->verdicts->op, core->comm, core->config.timeout_s));
    return common_failure(engine);
}
