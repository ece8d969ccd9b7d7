#include "lib/progress/agreement.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "lib/base/yielding.h"
#include "lib/progress/inquest.h"
#include "lib/progress/queue_inside.h"

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

/* All that ranks must agree on. The name of a public collective is its id. */
static uint64_t fingerprint(const fsdpi_engine *engine, const fsdpi_call *call)
{
    uint64_t hash = fsdpi_hash_word(fsdpi_hash_word(call->salt, call->count), packed(call));

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
    return fsdpi_letter_of(&request->lane->box, position, request->number);
}

/* With nothing in the long lanes of all ranks, what comes into them next can begin at once: see lib/progress/change_lanes.h. */
static unsigned flag_of_lanes(const fsdp_request *request)
{
    return fsdpi_head(request->queue, FSDPI_LANE_LONG) == NULL ? FSDPI_FLAG_STILL : 0;
}

void fsdpi_agreement_post(fsdp_request *request)
{
    const fsdpi_engine *engine = request->engine;
    fsdpi_mailbox      *box    = &request->lane->box;
    const fsdpi_call   *call   = &request->call;
    const uint64_t      number = box->number + 1;
    fsdpi_letter       *letter = fsdpi_letter_of(box, engine->nodes->position, number);

    letter->call    = fingerprint(engine, call);
    letter->status  = request->verdict.status;
    letter->flags   = FSDPI_FLAG_SAME | FSDPI_FLAG_ONE_PLACE | flag_of_lanes(request);
    request->number = number;
    if (call->collective != NULL && call->collective->offer != NULL && letter->status == FSDP_OK && !request->closing) {
        letter->flags |= call->collective->offer(request, letter);
        request->buffers_at = letter->at;
    }
    fsdpi_mailbox_post(box, letter, number);
    if ((letter->flags & FSDPI_FLAG_OFFERED) != 0) {
        fsdpi_fetch_result(call);
    }
}

static fsdpi_opinion opinion_of_rank(const fsdp_request *request, int position)
{
    return fsdpi_read_opinion(fsdpi_letter_from(request, position));
}

static fsdpi_opinion opinion_of_node(const fsdp_request *request)
{
    const fsdpi_nodes *nodes = request->engine->nodes;

    if (fsdpi_mailbox_has_tree(&request->lane->box)) {
        return fsdpi_mailbox_verdict(&request->lane->box, request->number);
    }
    fsdpi_opinion all = opinion_of_rank(request, 0);
    for (int p = 1; p < nodes->size; p++) {
        const fsdpi_opinion one = opinion_of_rank(request, p);
        fsdpi_join(&all, &one);
    }
    return all;
}

static void agree(fsdp_request *request, const fsdpi_opinion *all, bool *agreed)
{
    request->flags    = all->flags & ~(unsigned)FSDPI_FLAG_STILL;
    request->is_still = (all->flags & FSDPI_FLAG_STILL) != 0;
    *agreed           = true;
}

static fsdp_status conclude(fsdp_request *request, const fsdpi_opinion *all, fsdpi_progress *progress, bool *agreed)
{
    const fsdpi_engine *engine = request->engine;

    *progress = FSDPI_MOVED;
    if (fsdpi_is_consent(all)) {
        agree(request, all, agreed);
        return FSDP_OK;
    }
    if (request->verdict.status == FSDP_OK) {
        fsdpi_describe(&request->call, engine->core->size, request->verdict.text, sizeof request->verdict.text);
    }
    if (request->closing && request->ops != NULL && request->ops->abandon != NULL) {
        request->ops->abandon(request);
    }
    atomic_store_explicit(&request->state, FSDPI_REQUEST_EXCHANGING_DETAILS, memory_order_relaxed);
    fsdpi_summarize(&request->verdict, &request->lane->verdicts);
    return fsdpi_post_allreduce(&request->lane->messages, &request->lane->verdicts, engine->verdicts->type,
                                engine->verdicts->op);
}

/* The leader has the letters of its node: writes its record for the others. */
static void ask_nodes(fsdp_request *request, fsdpi_opinion node)
{
    fsdpi_record_head *record = fsdpi_exchange_begin(&request->lane->exchange);

    *record = (fsdpi_record_head){.all = node};
    if (fsdpi_carries(&node)) {
        record->bytes = request->call.collective->record(request, (unsigned char *)(record + 1));
    }
    atomic_store_explicit(&request->state, FSDPI_REQUEST_ASKING_NODES, memory_order_relaxed);
}

/* What the other one of two nodes will send, if it calls the same; `swaps`: and what this one sends in turn. */
static fsdp_status expect_portion(fsdp_request *request, bool *swaps)
{
    const fsdpi_collective *collective = request->call.collective;
    fsdpi_exchange         *exchange   = &request->lane->exchange;
    const int               other      = fsdpi_node_before(request->engine->nodes, 1);
    const size_t            bytes      = collective->expected(request, other);

    void *place = bytes > 0 ? collective->place(request, other) : NULL;
    if (bytes <= exchange->together && (place == NULL || bytes < FSDPI_LEAST_PLACED)) {
        return FSDP_OK;
    }
    const fsdpi_portion portion = collective->portion(request, other);

    *swaps = !request->is_put_off && fsdpi_pairs_may_swap(exchange, portion.bytes, bytes, place != NULL);
    if (*swaps) {
        return fsdpi_pairs_swap(exchange, other, portion, place, bytes);
    }
    return bytes > exchange->together ? fsdpi_pairs_expect(exchange, other, place, bytes) : FSDP_OK;
}

/* What each other one needs, and with it what this one says. */
static inline fsdp_status send_portions(fsdp_request *request, bool carries)
{
    const fsdpi_collective *collective = request->call.collective;
    const fsdpi_nodes      *nodes      = request->engine->nodes;
    fsdpi_exchange         *exchange   = &request->lane->exchange;

    for (int k = 1; k < nodes->count; k++) {
        const int to = fsdpi_node_behind(nodes, k);
        FSDP_TRY(carries && request->is_put_off
                     ? fsdpi_pairs_announce(exchange, to, collective->portion(request, to).bytes)
                     : fsdpi_pairs_send(exchange, to, carries ? collective->portion(request, to) : (fsdpi_portion){0}));
    }
    return fsdpi_pairs_listen(exchange);
}

/* The same where nodes exchange in pairs: with what each other one needs. */
static fsdp_status ask_in_pairs(fsdp_request *request, fsdpi_opinion node)
{
    const fsdpi_collective *collective = request->call.collective;
    const fsdpi_nodes      *nodes      = request->engine->nodes;
    fsdpi_exchange         *exchange   = &request->lane->exchange;
    fsdpi_record_head      *record     = fsdpi_pairs_begin(exchange, &node);

    atomic_store_explicit(&request->state, FSDPI_REQUEST_ASKING_NODES, memory_order_relaxed);
    const bool carries = fsdpi_carries(&node);
    bool       swaps   = false;
    if (carries && nodes->count == 2) {
        FSDP_TRY(expect_portion(request, &swaps));
    }
    if (swaps) {
        return FSDP_OK;
    }
    if (carries && nodes->largest > 1) { /* else each sends its input as it is */
        (void)collective->record(request, (unsigned char *)(record + 1));
    }
    return send_portions(request, carries);
}

/* All heads have come: what all say decides where the rest of the others' data belongs. */
static fsdp_status receive_portions(fsdp_request *request, bool carries)
{
    const fsdpi_nodes *nodes    = request->engine->nodes;
    fsdpi_exchange    *exchange = &request->lane->exchange;

    for (int k = 1; k < nodes->count; k++) {
        const int from = fsdpi_node_before(nodes, k);
        FSDP_TRY(fsdpi_pairs_receive(exchange, from, carries ? request->call.collective->place(request, from) : NULL));
    }
    return FSDP_OK;
}

/* And what this node has put off until now goes to them. */
static fsdp_status send_later(fsdp_request *request)
{
    const fsdpi_nodes *nodes = request->engine->nodes;

    for (int k = 1; k < nodes->count; k++) {
        const int to = fsdpi_node_behind(nodes, k);
        FSDP_TRY(fsdpi_pairs_send_later(&request->lane->exchange, to, request->call.collective->portion(request, to)));
    }
    return FSDP_OK;
}

static fsdp_status exchange_portions(fsdp_request *request)
{
    const bool carries = fsdpi_carries(fsdpi_exchange_opinion(&request->lane->exchange));

    FSDP_TRY(receive_portions(request, carries));
    if (carries && request->call.collective->agreed != NULL) {
        request->call.collective->agreed(request);
    }
    return carries && request->is_put_off ? send_later(request) : FSDP_OK;
}

/* Whether the result can be taken while this node's data still leaves: in place, that lies where the result belongs. */
static bool may_take_early(const fsdp_request *request)
{
    const fsdpi_call    *call = &request->call;
    const unsigned char *in = call->in, *out = call->out;

    return fsdpi_carries(fsdpi_exchange_opinion(&request->lane->exchange)) && !request->in_halves &&
           (in + call->in_bytes <= out || out + call->out_bytes <= in);
}

/* Whether the heads of all nodes have come: then what follows them is under way. */
static fsdp_status hear_pairs(fsdp_request *request)
{
    fsdpi_exchange *exchange = &request->lane->exchange;

    FSDP_TRY(fsdpi_pairs_heard(exchange, &exchange->heard));
    return exchange->heard && exchange->apart ? exchange_portions(request) : FSDP_OK;
}

static fsdp_status advance_pairs(fsdp_request *request, fsdpi_progress *progress)
{
    fsdpi_exchange *exchange  = &request->lane->exchange;
    const bool      had_heard = exchange->heard;
    bool            complete  = false;

    if (!had_heard) {
        FSDP_TRY(hear_pairs(request));
        if (!exchange->heard) {
            return FSDP_OK;
        }
    }
    FSDP_TRY(fsdpi_pairs_begun_complete(exchange, &complete));
    if (complete) {
        FSDP_TRY(may_take_early(request) ? fsdpi_pairs_received(exchange, &complete)
                                         : fsdpi_messages_complete(&request->lane->messages, &complete));
    }
    *progress = complete ? FSDPI_FINISHED : had_heard ? FSDPI_WAITING : FSDPI_MOVED;
    return FSDP_OK;
}

static fsdp_status conclude_on_node(fsdp_request *request, fsdpi_progress *progress, bool *agreed)
{
    const fsdpi_opinion all = opinion_of_node(request);

    return conclude(request, &all, progress, agreed);
}

static fsdp_status arriving(fsdp_request *request, fsdpi_progress *progress, bool *agreed)
{
    const fsdpi_engine *engine = request->engine;

    if (engine->nodes->count == 1) {
        return fsdpi_mailbox_arrived(&request->lane->box, request->number) ? conclude_on_node(request, progress, agreed)
                                                                           : FSDP_OK;
    }
    if (engine->nodes->size > 1 && !fsdpi_mailbox_heard(&request->lane->box, request->number)) {
        return FSDP_OK;
    }
    *progress = FSDPI_MOVED;
    if (engine->nodes->position > 0) {
        atomic_store_explicit(&request->state, FSDPI_REQUEST_AWAITING_LEADER, memory_order_relaxed);
        return FSDP_OK;
    }
    if (request->lane->exchange.in_pairs) {
        return ask_in_pairs(request, opinion_of_node(request));
    }
    ask_nodes(request, opinion_of_node(request));
    return FSDP_OK;
}

static fsdp_status asking_nodes(fsdp_request *request, fsdpi_progress *progress, bool *agreed)
{
    FSDP_TRY(request->lane->exchange.in_pairs ? advance_pairs(request, progress)
                                              : fsdpi_exchange_advance(&request->lane->exchange, false, progress));
    if (*progress != FSDPI_FINISHED) {
        return FSDP_OK;
    }
    if (!fsdpi_inquest_lets_end(request->queue, request)) {
        *progress = FSDPI_WAITING;
        return FSDP_OK;
    }
    const fsdpi_opinion *all = fsdpi_exchange_opinion(&request->lane->exchange);
    if (request->engine->nodes->size > 1) {
        fsdpi_mailbox_tell(&request->lane->box, request->number, all);
    }
    return conclude(request, all, progress, agreed);
}

static fsdp_status awaiting_leader(fsdp_request *request, fsdpi_progress *progress, bool *agreed)
{
    fsdpi_mailbox *box = &request->lane->box;

    if (!fsdpi_mailbox_told(box, request->number)) {
        return FSDP_OK;
    }
    const fsdpi_opinion all = fsdpi_mailbox_verdict(box, request->number);
    return conclude(request, &all, progress, agreed);
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

/* ---- in one step ------------------------------------------------------------------------------------------------- */

bool fsdpi_agreement_is_brief(const fsdp_request *request)
{
    const fsdpi_collective *collective = request->call.collective;

    return request->is_at_once && collective != NULL && collective->is_brief != NULL && collective->prepare == NULL &&
           request->verdict.status == FSDP_OK && request->lane->exchange.in_pairs &&
           request->engine->nodes->largest == 1 && collective->is_brief(request);
}

/* All heads have come: whether nothing is left of it but to take what came with them, or instead of them. */
static bool is_settled(fsdp_request *request, const fsdpi_opinion *all)
{
    const fsdpi_exchange *exchange = &request->lane->exchange;

    return (!exchange->apart || exchange->swap != FSDPI_NO_SWAP) && fsdpi_carries(all) &&
           (request->lane->messages.n == 0 || may_take_early(request)) &&
           fsdpi_inquest_lets_end(request->queue, request);
}

static bool may_be_placed(const fsdp_request *request)
{
    return fsdpi_pairs_may_place(&request->lane->exchange, request->call.whole * request->call.width);
}

/* What its letter would say, which nobody reads. */
static fsdpi_opinion brief_opinion(fsdp_request *request)
{
    const fsdpi_call *call    = &request->call;
    fsdpi_letter     *letter  = fsdpi_letter_of(&request->lane->box, 0, request->number);
    const unsigned    offered = may_be_placed(request) ? call->collective->offer(request, letter) : FSDPI_FLAG_OFFERED;

    if (request->era == 0) {
        request->fingerprint = fingerprint(request->engine, call);
    }
    return (fsdpi_opinion){.call  = request->fingerprint,
                           .flags = FSDPI_FLAG_SAME | FSDPI_FLAG_ONE_PLACE | offered | flag_of_lanes(request)};
}

fsdp_status fsdpi_agreement_brief(fsdp_request *request, bool *agreed)
{
    fsdpi_exchange *exchange = &request->lane->exchange;
    bool            swaps    = false;

    request->number                 = ++request->lane->box.number;
    const fsdpi_opinion      mine   = brief_opinion(request);
    const fsdpi_record_head *record = fsdpi_pairs_begin(exchange, &mine);
    if (may_be_placed(request) && request->engine->nodes->count == 2) {
        FSDP_TRY(expect_portion(request, &swaps));
    }
    if (!swaps) {
        FSDP_TRY(send_portions(request, true));
    }
    atomic_store_explicit(&request->state, FSDPI_REQUEST_ASKING_NODES, memory_order_relaxed);
    fsdpi_fetch_result(&request->call);
    fsdpi_queue_record(request->queue, request, true); /* while messages are under way */
    FSDP_TRY(hear_pairs(request));
    if (exchange->heard && is_settled(request, &record->all)) {
        agree(request, &record->all, agreed);
    }
    return FSDP_OK;
}

/* ---- no agreement ------------------------------------------------------------------------------------------------ */

/* What this rank has found; once in all, where several have found the same. */
static void print_own(const fsdpi_engine *engine, const fsdpi_summary *all, const fsdpi_verdict *mine,
                      const char *detail)
{
    char others[32] = "";

    if (!fsdpi_verdict_is_first(all, mine)) {
        return;
    }
    if (all->alike && all->failed > 1) {
        (void)snprintf(others, sizeof others, ", on %s%d ranks", all->failed == engine->core->size ? "all " : "",
                       (int)all->failed);
    }
    fsdpi_log(engine->core->ctx, FSDP_LOG_ERROR, "%s (%s%s)", detail, fsdp_status_name((fsdp_status)mine->status),
              others);
}

/* A mismatch is logged here, once; who has bad arguments has logged that itself. */
static fsdp_status common_failure(const fsdpi_engine *engine, const fsdpi_summary *all)
{
    const fsdp_status status = fsdpi_verdicts_error(all, engine->core->ctx);

    if (all->failed == 0 && engine->core->rank == 0) {
        fsdpi_log(engine->core->ctx, FSDP_LOG_ERROR, "%s (%s)", fsdpi_error_recorded(engine->core->ctx),
                  fsdp_status_name(status));
    }
    return status;
}

fsdp_status fsdpi_details_advance(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdpi_engine *engine = request->engine;
    bool                complete;

    FSDP_TRY(fsdpi_messages_complete(&request->lane->messages, &complete));
    *progress = FSDPI_WAITING;
    if (!complete) {
        return FSDP_OK;
    }
    if (request->unprinted) {
        request->unprinted = false;
        print_own(engine, &request->lane->verdicts, &request->verdict, request->error);
    }
    return common_failure(engine, &request->lane->verdicts);
}

/* The largest of h and of ~h over all ranks are complements of each other just where all h are equal. */
fsdp_status fsdpi_compare_by_mpi(const fsdpi_engine *engine, fsdp_status status, uint64_t salt, bool *agreed)
{
    uint64_t words[] = {salt, ~salt, status != FSDP_OK};

    FSDPI_TRY_MPI(engine->core->ctx, fsdpi_mpi_allreduce(words, 3, MPI_UINT64_T, MPI_MAX, engine->core->comm,
                                                         engine->core->config.timeout_s));
    *agreed = words[0] == ~words[1] && words[2] == 0;
    return FSDP_OK;
}

fsdp_status fsdpi_tell_by_mpi(const fsdpi_engine *engine, fsdp_status status, const char *text)
{
    const fsdpi_core *core      = engine->core;
    fsdpi_verdict     mine      = {.status = (int32_t)status, .place = core->rank, .rank = core->rank};
    fsdpi_summary    *all       = &engine->verdicts->all;
    const bool        unprinted = status != FSDP_OK && fsdpi_error_take_unprinted();
    char              detail[FSDPI_ERROR_BYTES];

    (void)snprintf(detail, sizeof detail, "%s", status != FSDP_OK ? fsdpi_error_recorded(core->ctx) : text);
    (void)snprintf(mine.text, sizeof mine.text, "%.*s", FSDPI_DETAIL_BYTES - 1, detail);
    fsdpi_summarize(&mine, all);
    FSDPI_TRY_MPI(core->ctx, fsdpi_mpi_allreduce(all, 1, engine->verdicts->type, engine->verdicts->op, core->comm,
                                                 core->config.timeout_s));
    if (unprinted) {
        print_own(engine, all, &mine, detail);
    }
    return FSDP_OK;
}

fsdp_status fsdpi_agree_by_mpi(const fsdpi_engine *engine, fsdp_status status, const char *text, uint64_t salt)
{
    bool agreed = false;

    FSDP_TRY(fsdpi_compare_by_mpi(engine, status, salt, &agreed));
    if (agreed) {
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_tell_by_mpi(engine, status, text));
    return common_failure(engine, &engine->verdicts->all);
}
