#include "lib/agreement.h"

#include <stdio.h>
#include <string.h>

#include "lib/context.h"
#include "lib/device/gpu_request.h"
#include "lib/exchange.h"
#include "lib/hash.h"
#include "lib/log.h"
#include "lib/yielding.h"

enum { MOST_RANKS_NAMED = 4, COUNTS_SHOWN = 6 };

/* ---- what is called ---------------------------------------------------------------------------------------------- */

static void describe_counts(const fsdp_context *ctx, const fsdpi_call *call, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, " of");

    for (int r = 0; r < ctx->size && r < COUNTS_SHOWN && used < size; r++) {
        used += (size_t)snprintf(text + used, size - used, "%s%zu", r > 0 ? "+" : " ", call->counts[r]);
    }
    if (ctx->size > COUNTS_SHOWN && used < size) {
        (void)snprintf(text + used, size - used, "+...");
    }
}

void fsdpi_describe(const fsdp_context *ctx, const fsdpi_call *call, char *text, size_t size)
{
    char what[80] = "", op[16] = "", root[24] = "";

    if (call->has_data && call->division == FSDPI_DIVISION_COUNTS && call->counts != NULL) {
        describe_counts(ctx, call, what, sizeof what);
    } else if (call->has_data) {
        (void)snprintf(what, sizeof what, " of %zu", call->count);
    }
    if (call->has_op) {
        (void)snprintf(op, sizeof op, ", %s", fsdp_redop_name(call->op));
    }
    if (call->has_root) {
        (void)snprintf(root, sizeof root, ", root %d", call->root);
    }
    (void)snprintf(text, size, "%s%s%s%s%s%s%s%s%s%s%s%s", call->name, what, call->has_data ? " " : "",
                   call->has_data ? fsdp_dtype_name(call->dtype) : "", call->has_data ? " elements" : "",
                   call->on_device ? " on the GPU" : "", op, root, call->label != NULL ? ", " : "",
                   call->label != NULL ? call->label : "", call->note != NULL ? " behind: " : "",
                   call->note != NULL ? call->note : "");
}

void fsdpi_take_local_verdict(fsdp_request *request, fsdp_status status)
{
    request->verdict.status = (int32_t)status;
    request->verdict.rank   = request->ctx->shown_rank;
    if (status != FSDP_OK) {
        (void)snprintf(request->verdict.text, sizeof request->verdict.text, "%.*s", FSDPI_DETAIL_BYTES - 1,
                       fsdpi_error_recorded(request->ctx));
    }
}

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
static uint64_t fingerprint(const fsdp_context *ctx, const fsdpi_call *call)
{
    uint64_t hash = fsdpi_hash_word(call->salt, call->count);

    if (call->collective == NULL || call->is_step) {
        hash = fsdpi_hash_text(hash, call->name);
    }
    if (call->label != NULL) {
        hash = fsdpi_hash_text(hash, call->label);
    }
    if (call->division == FSDPI_DIVISION_COUNTS && call->counts != NULL) {
        hash = fsdpi_hash_bytes(hash, call->counts, (size_t)ctx->size * sizeof *call->counts) + 1;
    }
    return hash;
}

/* ---- agreement --------------------------------------------------------------------------------------------------- */

const fsdpi_letter *fsdpi_letter_from(const fsdp_request *request, int position)
{
    return fsdpi_letter_of(&request->ctx->box, position, request->number);
}

void fsdpi_agreement_post(fsdp_request *request)
{
    fsdp_context     *ctx    = request->ctx;
    const fsdpi_call *call   = &request->call;
    fsdpi_letter     *letter = fsdpi_letter_of(&ctx->box, ctx->nodes.position, ctx->box.number + 1);

    letter->call        = packed(call);
    letter->fingerprint = fingerprint(ctx, call);
    letter->status      = request->verdict.status;
    letter->flags       = 0;
    request->number     = ctx->box.number + 1;
    if (call->collective != NULL && call->collective->offer != NULL && letter->status == FSDP_OK && !request->closing) {
        letter->flags = call->collective->offer(request, letter);
    }
    fsdpi_mailbox_post(ctx, letter, request->number);
}

/* What one rank, or one node, says; and then what several say together. */
typedef struct opinion {
    uint64_t call, fingerprint;
    uint32_t flags;
    int32_t  status;
} opinion;

static void join(opinion *all, opinion one)
{
    if (one.call != all->call || one.fingerprint != all->fingerprint) {
        all->flags &= ~(uint32_t)FSDPI_FLAG_SAME;
    }
    all->flags &= one.flags | FSDPI_FLAG_SAME;
    all->status = one.status > all->status ? one.status : all->status;
}

static opinion opinion_of_node(const fsdp_request *request)
{
    const fsdp_context *ctx  = request->ctx;
    const fsdpi_letter *mine = fsdpi_letter_from(request, ctx->nodes.position);
    opinion             all  = {mine->call, mine->fingerprint, mine->flags | FSDPI_FLAG_SAME, mine->status};

    for (int p = 0; p < ctx->nodes.size; p++) {
        const fsdpi_letter *letter = fsdpi_letter_from(request, p);
        join(&all, (opinion){letter->call, letter->fingerprint, letter->flags, letter->status});
    }
    return all;
}

static bool is_consent(opinion all)
{
    return (all.flags & FSDPI_FLAG_SAME) != 0 && all.status == FSDP_OK;
}

static fsdp_status conclude(fsdp_request *request, opinion all, fsdpi_progress *progress, bool *agreed)
{
    fsdp_context *ctx = request->ctx;

    *progress = FSDPI_MOVED;
    if (is_consent(all)) {
        request->flags = all.flags;
        *agreed        = true;
        return FSDP_OK;
    }
    if (request->verdict.status == FSDP_OK) {
        fsdpi_describe(ctx, &request->call, request->verdict.text, sizeof request->verdict.text);
    }
    if (request->closing) {
        fsdpi_gpu_finish(request); /* before any rank returns, no GPU uses the buffers of another any more */
        fsdpi_rails_forget_landed(ctx);
    }
    atomic_store(&request->state, FSDPI_REQUEST_EXCHANGING_DETAILS);
    return fsdpi_post_allgather(ctx, &request->verdict, ctx->verdicts, sizeof request->verdict);
}

/* The leader has the letters of its node: writes its record for the others. */
static void ask_nodes(fsdp_request *request, opinion node)
{
    fsdpi_record_head *record = fsdpi_exchange_begin(request->ctx);

    *record = (fsdpi_record_head){
        .call = node.call, .fingerprint = node.fingerprint, .flags = node.flags, .status = node.status};
    if (is_consent(node) && (node.flags & FSDPI_FLAG_OFFERED) != 0) {
        record->bytes = request->call.collective->record(request, (unsigned char *)(record + 1));
    }
    atomic_store(&request->state, FSDPI_REQUEST_ASKING_NODES);
}

static fsdp_status arriving(fsdp_request *request, fsdpi_progress *progress, bool *agreed)
{
    const fsdp_context *ctx = request->ctx;

    if (!fsdpi_mailbox_arrived(request->ctx, request->number)) {
        return FSDP_OK;
    }
    if (ctx->nodes.count == 1) {
        return conclude(request, opinion_of_node(request), progress, agreed);
    }
    *progress = FSDPI_MOVED;
    if (ctx->nodes.position == 0) {
        ask_nodes(request, opinion_of_node(request));
    } else {
        atomic_store(&request->state, FSDPI_REQUEST_AWAITING_LEADER);
    }
    return FSDP_OK;
}

static opinion opinion_of_nodes(const fsdp_request *request)
{
    const fsdp_context      *ctx   = request->ctx;
    const fsdpi_record_head *first = fsdpi_exchange_record(ctx, ctx->nodes.mine);
    opinion                  all   = {first->call, first->fingerprint, first->flags, first->status};

    for (int m = 0; m < ctx->nodes.count; m++) {
        const fsdpi_record_head *record = fsdpi_exchange_record(ctx, m);

        join(&all, (opinion){record->call, record->fingerprint, record->flags, record->status});
        if ((record->flags & FSDPI_FLAG_SAME) == 0) {
            all.flags &= ~(uint32_t)FSDPI_FLAG_SAME;
        }
    }
    return all;
}

static fsdp_status asking_nodes(fsdp_request *request, fsdpi_progress *progress, bool *agreed)
{
    fsdp_context *ctx = request->ctx;

    FSDP_TRY(fsdpi_exchange_advance(ctx, false, progress));
    if (*progress != FSDPI_FINISHED) {
        return FSDP_OK;
    }
    const opinion all   = opinion_of_nodes(request);
    fsdpi_letter *board = &ctx->box.desks[0]->board[request->number & 1];
    board->flags        = all.flags;
    board->status       = all.status;
    atomic_store_explicit(&board->number, request->number, memory_order_release);
    fsdpi_mailbox_wake(ctx);
    return conclude(request, all, progress, agreed);
}

static fsdp_status awaiting_leader(fsdp_request *request, fsdpi_progress *progress, bool *agreed)
{
    fsdp_context       *ctx    = request->ctx;
    fsdpi_desk         *leader = ctx->box.desks[0];
    const fsdpi_letter *board  = &leader->board[request->number & 1];

    if (!fsdpi_word_reached(ctx, leader, &board->number, request->number)) {
        return FSDP_OK;
    }
    return conclude(request, (opinion){.flags = board->flags, .status = board->status}, progress, agreed);
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

/* Some rank's arguments are bad: names the first few of those ranks with what each had to say. */
static fsdp_status failed_ranks(fsdp_context *ctx, const fsdpi_verdict *verdicts)
{
    char        text[FSDPI_ERROR_BYTES];
    size_t      used  = 0;
    int         named = 0, failed = 0;
    fsdp_status status = FSDP_OK;

    for (int r = 0; r < ctx->size; r++) {
        if (verdicts[r].status == FSDP_OK) {
            continue;
        }
        status = status == FSDP_OK ? (fsdp_status)verdicts[r].status : status;
        failed++;
        if (named < MOST_RANKS_NAMED && used < sizeof text) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%srank %d: %.*s", named > 0 ? "; " : "",
                                     verdicts[r].rank, FSDPI_DETAIL_BYTES, verdicts[r].text);
            named++;
        }
    }
    if (failed > named && used < sizeof text) {
        (void)snprintf(text + used, sizeof text - used, "; and %d more ranks", failed - named);
    }
    return fsdpi_record(ctx, status, "%s", text);
}

/* All arguments are good but differ: names rank 0's call and the first that reads otherwise. */
static fsdp_status differing_ranks(fsdp_context *ctx, const fsdpi_verdict *verdicts)
{
    int other = 1;

    while (other < ctx->size && strcmp(verdicts[other].text, verdicts[0].text) == 0) {
        other++;
    }
    if (other == ctx->size) {
        return fsdpi_record(ctx, FSDP_ERR_MISMATCH,
                            "all ranks call %s, but with arguments that differ in what is not "
                            "shown here; pass the same on every rank",
                            verdicts[0].text);
    }
    return fsdpi_record(ctx, FSDP_ERR_MISMATCH,
                        "rank %d calls %s, but rank %d calls %s; make the same call on every rank", verdicts[0].rank,
                        verdicts[0].text, verdicts[other].rank, verdicts[other].text);
}

static bool any_failed(const fsdp_context *ctx)
{
    for (int r = 0; r < ctx->size; r++) {
        if (ctx->verdicts[r].status != FSDP_OK) {
            return true;
        }
    }
    return false;
}

static fsdp_status common_failure(fsdp_context *ctx)
{
    if (any_failed(ctx)) {
        return failed_ranks(ctx, ctx->verdicts);
    }
    const fsdp_status status = differing_ranks(ctx, ctx->verdicts);
    if (ctx->rank == 0) {
        fsdpi_log(ctx, FSDP_LOG_ERROR, "%s (%s)", fsdpi_error_recorded(ctx), fsdp_status_name(status));
    }
    return status;
}

fsdp_status fsdpi_details_advance(fsdp_request *request, fsdpi_progress *progress)
{
    fsdp_context *ctx = request->ctx;
    bool          complete;

    FSDP_TRY(fsdpi_messages_complete(ctx, &complete));
    *progress = FSDPI_WAITING;
    if (!complete) {
        return FSDP_OK;
    }
    return common_failure(ctx);
}

/* The largest of h and of ~h over all ranks are complements of each other just where all h are equal. */
static fsdp_status compare_by_mpi(fsdp_context *ctx, uint64_t salt, bool *equal)
{
    uint64_t words[2] = {salt, ~salt};

    FSDPI_TRY_MPI(ctx, fsdpi_mpi_allreduce(words, 2, MPI_UINT64_T, MPI_MAX, ctx->comm, ctx->config.timeout_s));
    *equal = words[0] == ~words[1];
    return FSDP_OK;
}

fsdp_status fsdpi_agree_by_mpi(fsdp_context *ctx, fsdp_status status, const char *text, uint64_t salt)
{
    fsdpi_verdict mine  = {.status = (int32_t)status, .rank = ctx->rank};
    bool          equal = false;

    (void)snprintf(mine.text, sizeof mine.text, "%.*s", FSDPI_DETAIL_BYTES - 1,
                   status != FSDP_OK ? fsdpi_error_recorded(ctx) : text);
    FSDPI_TRY_MPI(
        ctx, fsdpi_mpi_allgather(&mine, ctx->verdicts, (int)sizeof mine, MPI_BYTE, ctx->comm, ctx->config.timeout_s));
    FSDP_TRY(compare_by_mpi(ctx, salt, &equal));
    return equal && !any_failed(ctx) ? FSDP_OK : common_failure(ctx);
}

void fsdpi_describe_missing(const fsdp_request *request, char *text, size_t size)
{
    const fsdp_context *ctx  = request->ctx;
    size_t              used = 0;

    (void)snprintf(text, size, "data moved");
    switch (atomic_load(&request->state)) {
    case FSDPI_REQUEST_ARRIVING:
        used = (size_t)snprintf(text, size, "this call was still missing from rank");
        for (int p = 0; p < ctx->nodes.size && used < size; p++) {
            if (atomic_load(&fsdpi_letter_from(request, p)->number) < request->number) {
                used +=
                    (size_t)snprintf(text + used, size - used, " %d", fsdpi_rank_at(&ctx->nodes, ctx->nodes.mine, p));
            }
        }
        break;
    case FSDPI_REQUEST_QUEUED:
    case FSDPI_REQUEST_ASKING_NODES:
    case FSDPI_REQUEST_AWAITING_LEADER:
        (void)snprintf(text, size, "this call was still missing on another node");
        break;
    default:
        break;
    }
}
