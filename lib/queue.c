#include "lib/queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/context.h"
#include "lib/error.h"
#include "lib/hash.h"
#include "lib/log.h"
#include "lib/memory.h"

enum { REQUESTS_AT_A_TIME = 32, MESSAGES_AT_FIRST = 32, MOST_RANKS_NAMED = 4, COUNTS_SHOWN = 6 };

/* A block of requests that are allocated together. */
typedef struct request_block {
    struct request_block *next;
    fsdp_request          requests[REQUESTS_AT_A_TIME];
} request_block;

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static void put_free(fsdpi_queue *queue, fsdp_request *request)
{
    request->state = FSDPI_REQUEST_FREE;
    request->next  = NULL;
    if (queue->free_tail != NULL) {
        queue->free_tail->next = request;
    } else {
        queue->free_head = request;
    }
    queue->free_tail = request;
    queue->n_free++;
}

static fsdp_status make_requests(fsdp_context *ctx)
{
    request_block *block = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, sizeof *block);

    if (block == NULL) {
        return FSDP_ERR_MEMORY;
    }
    block->next       = ctx->queue.blocks;
    ctx->queue.blocks = block;
    for (size_t i = 0; i < REQUESTS_AT_A_TIME; i++) {
        block->requests[i].ctx = ctx;
        put_free(&ctx->queue, &block->requests[i]);
    }
    ctx->queue.n_made += REQUESTS_AT_A_TIME;
    return FSDP_OK;
}

/* Some free requests are kept back, so that one just ended is not in use again when it is ended a second time. */
static fsdp_request *take_free(fsdp_context *ctx)
{
    fsdpi_queue *queue = &ctx->queue;

    if (queue->n_free < REQUESTS_AT_A_TIME / 2 && make_requests(ctx) != FSDP_OK && queue->n_free == 0) {
        return NULL;
    }
    fsdp_request *request = queue->free_head;
    queue->free_head      = request->next;
    queue->free_tail      = queue->free_head != NULL ? queue->free_tail : NULL;
    queue->n_free--;
    return request;
}

static void enqueue(fsdpi_queue *queue, fsdp_request *request)
{
    request->next = NULL;
    if (queue->tail != NULL) {
        queue->tail->next = request;
    } else {
        queue->head = request;
    }
    queue->tail = request;
}

/* The operation at the head is over: keeps its verdict for whoever waits, and lets the next one begin. */
static void complete_head(fsdp_context *ctx, fsdp_status status)
{
    fsdpi_queue  *queue   = &ctx->queue;
    fsdp_request *request = queue->head;

    request->status = status;
    request->state  = FSDPI_REQUEST_DONE;
    if (status != FSDP_OK) {
        memcpy(request->error, ctx->error, sizeof request->error);
    }
    queue->head       = request->next;
    queue->tail       = queue->head != NULL ? queue->tail : NULL;
    queue->n_messages = ctx->broken == FSDP_OK ? 0 : queue->n_messages;
    fsdpi_free(ctx, FSDP_MEMORY_STAGING, request->scratch, request->scratch_bytes);
    request->scratch       = NULL;
    request->scratch_bytes = 0;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static fsdp_status next_message(fsdp_context *ctx, MPI_Request **message)
{
    fsdpi_queue *queue = &ctx->queue;

    if (queue->n_messages == queue->capacity) {
        const size_t capacity = queue->capacity > 0 ? 2 * queue->capacity : MESSAGES_AT_FIRST;
        MPI_Request *messages = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, capacity * sizeof(MPI_Request));
        if (messages == NULL) {
            ctx->broken = FSDP_ERR_MEMORY; /* some messages of this round are under way, and peers wait for the rest */
            return FSDP_ERR_MEMORY;
        }
        if (queue->n_messages > 0) {
            memcpy(messages, queue->messages, queue->n_messages * sizeof(MPI_Request));
        }
        fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, queue->messages, queue->capacity * sizeof(MPI_Request));
        queue->messages = messages;
        queue->capacity = capacity;
    }
    *message  = &queue->messages[queue->n_messages++];
    **message = MPI_REQUEST_NULL;
    return FSDP_OK;
}

typedef enum message_kind { SEND, RECEIVE, BROADCAST } message_kind;

static fsdp_status post_piece(fsdp_request *request, message_kind kind, void *data, int bytes, int peer)
{
    fsdp_context *ctx = request->ctx;
    const int     tag = (int)(request->sequence & 0x7fff); /* the smallest upper bound that MPI allows is 32767 */
    MPI_Request  *message;

    FSDP_TRY(next_message(ctx, &message));
    switch (kind) {
    case SEND:
        FSDPI_TRY_MPI(ctx, MPI_Isend(data, bytes, MPI_BYTE, peer, tag, ctx->comm, message));
        break;
    case RECEIVE:
        FSDPI_TRY_MPI(ctx, MPI_Irecv(data, bytes, MPI_BYTE, peer, tag, ctx->comm, message));
        break;
    case BROADCAST:
        FSDPI_TRY_MPI(ctx, MPI_Ibcast(data, bytes, MPI_BYTE, peer, ctx->comm, message));
        break;
    }
    return FSDP_OK;
}

/* MPI counts in int: sender and receiver cut alike. */
static fsdp_status post(fsdp_request *request, message_kind kind, void *data, size_t bytes, int peer)
{
    const size_t   most = (size_t)request->ctx->config.message_bytes;
    unsigned char *from = data;

    for (size_t done = 0; done < bytes;) {
        const size_t piece = bytes - done < most ? bytes - done : most;
        FSDP_TRY(post_piece(request, kind, from + done, (int)piece, peer));
        done += piece;
    }
    return FSDP_OK;
}

fsdp_status fsdpi_post_send(fsdp_request *request, const void *data, size_t bytes, int peer)
{
    return post(request, SEND, (void *)(uintptr_t)data, bytes, peer);
}

fsdp_status fsdpi_post_receive(fsdp_request *request, void *data, size_t bytes, int peer)
{
    return post(request, RECEIVE, data, bytes, peer);
}

fsdp_status fsdpi_post_broadcast(fsdp_request *request, void *data, size_t bytes, int root)
{
    return post(request, BROADCAST, data, bytes, root);
}

fsdp_status fsdpi_post_barrier(fsdp_request *request)
{
    MPI_Request *message;

    FSDP_TRY(next_message(request->ctx, &message));
    FSDPI_TRY_MPI(request->ctx, MPI_Ibarrier(request->ctx->comm, message));
    return FSDP_OK;
}

static fsdp_status messages_complete(fsdp_context *ctx, int *complete)
{
    fsdpi_queue *queue = &ctx->queue;

    *complete = 1;
    if (queue->n_messages > 0) {
        FSDPI_TRY_MPI(ctx, MPI_Testall((int)queue->n_messages, queue->messages, complete, MPI_STATUSES_IGNORE));
        queue->n_messages = *complete ? 0 : queue->n_messages;
    }
    return FSDP_OK;
}

/* ---- agreement --------------------------------------------------------------------------------------------------- */

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

/* "reduce of 5 f32 elements, sum, root 2, for unit h.0" */
static void describe(const fsdp_context *ctx, const fsdpi_call *call, char *text, size_t size)
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
    (void)snprintf(text, size, "%s%s%s%s%s%s%s%s%s", call->name, what, call->has_data ? " " : "",
                   call->has_data ? fsdp_dtype_name(call->dtype) : "", call->has_data ? " elements" : "", op, root,
                   call->label != NULL ? ", " : "", call->label != NULL ? call->label : "");
}

static uint64_t fingerprint(const fsdp_context *ctx, const fsdpi_call *call)
{
    uint64_t hash = fsdpi_hash_text(FSDPI_HASH_START, call->name);

    hash = fsdpi_hash_text(hash, call->label != NULL ? call->label : "");
    hash = fsdpi_hash_u64(hash, call->salt);
    hash = fsdpi_hash_u64(hash, call->has_data ? (uint64_t)call->dtype : 0);
    hash = fsdpi_hash_u64(hash, call->has_op ? (uint64_t)call->op : 0);
    hash = fsdpi_hash_u64(hash, call->has_root ? (uint64_t)call->root : 0);
    hash = fsdpi_hash_u64(hash, call->count);
    if (call->division == FSDPI_DIVISION_COUNTS && call->counts != NULL) {
        hash = fsdpi_hash_bytes(hash, call->counts, (size_t)ctx->size * sizeof *call->counts);
    }
    return hash;
}

/* The largest of h and of ~h over all ranks are complements of each other just where all h are equal. */
static fsdp_status post_agreement(fsdp_request *request)
{
    fsdp_context  *ctx  = request->ctx;
    const uint64_t hash = fingerprint(ctx, &request->call);
    MPI_Request   *message;

    request->words[0] = hash;
    request->words[1] = ~hash;
    request->words[2] = (uint64_t)request->verdict.status;
    FSDP_TRY(next_message(ctx, &message));
    FSDPI_TRY_MPI(ctx, MPI_Iallreduce(MPI_IN_PLACE, request->words, FSDPI_AGREE_WORDS, MPI_UINT64_T, MPI_MAX, ctx->comm,
                                      message));
    return FSDP_OK;
}

static bool all_agree(const fsdp_request *request)
{
    return request->words[0] == ~request->words[1] && request->words[2] == FSDP_OK;
}

static fsdp_status post_details(fsdp_request *request)
{
    fsdp_context *ctx = request->ctx;
    MPI_Request  *message;

    if (request->verdict.status == FSDP_OK) {
        describe(ctx, &request->call, request->verdict.text, sizeof request->verdict.text);
    }
    FSDP_TRY(next_message(ctx, &message));
    FSDPI_TRY_MPI(ctx, MPI_Iallgather(&request->verdict, (int)sizeof request->verdict, MPI_BYTE, ctx->staging,
                                      (int)sizeof request->verdict, MPI_BYTE, ctx->comm, message));
    return FSDP_OK;
}

/* Some rank's arguments are bad: names the first few of those ranks with what each had to say. */
static fsdp_status failed_ranks(fsdp_request *request, const fsdpi_verdict *verdicts)
{
    fsdp_context *ctx = request->ctx;
    char          text[FSDPI_ERROR_BYTES];
    size_t        used  = 0;
    int           named = 0, failed = 0;
    fsdp_status   status = FSDP_OK;

    for (int r = 0; r < ctx->size; r++) {
        if (verdicts[r].status == FSDP_OK) {
            continue;
        }
        status = status == FSDP_OK ? (fsdp_status)verdicts[r].status : status;
        failed++;
        if (named < MOST_RANKS_NAMED && used < sizeof text) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%srank %d: %.*s", named > 0 ? "; " : "", r,
                                     FSDPI_DETAIL_BYTES, verdicts[r].text);
            named++;
        }
    }
    if (failed > named && used < sizeof text) {
        (void)snprintf(text + used, sizeof text - used, "; and %d more ranks", failed - named);
    }
    return fsdpi_record(ctx, status, "%s", text);
}

/* All arguments are good but differ: names rank 0's call and the first that reads otherwise. */
static fsdp_status differing_ranks(fsdp_request *request, const fsdpi_verdict *verdicts)
{
    fsdp_context *ctx   = request->ctx;
    int           other = 1;

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
                        "rank 0 calls %s, but rank %d calls %s; make the same call on every rank", verdicts[0].text,
                        other, verdicts[other].text);
}

static fsdp_status common_failure(fsdp_request *request)
{
    const fsdpi_verdict *verdicts = (const fsdpi_verdict *)(const void *)request->ctx->staging;

    if (request->words[2] != FSDP_OK) {
        return failed_ranks(request, verdicts);
    }
    const fsdp_status status = differing_ranks(request, verdicts);
    if (request->ctx->rank == 0) {
        fsdpi_log(request->ctx, FSDP_LOG_ERROR, "%s (%s)", request->ctx->error, fsdp_status_name(status));
    }
    return status;
}

/* ---- progress ---------------------------------------------------------------------------------------------------- */

static fsdp_status record_broken(fsdp_context *ctx)
{
    return fsdpi_record(ctx, ctx->broken,
                        "the context cannot be used any more since an earlier failure (%s); finalize it",
                        fsdp_status_text(ctx->broken));
}

static void take_local_verdict(fsdp_request *request, fsdp_status status)
{
    request->verdict.status = (int32_t)status;
    if (status != FSDP_OK) {
        (void)snprintf(request->verdict.text, sizeof request->verdict.text, "%.*s", FSDPI_DETAIL_BYTES - 1,
                       request->ctx->error);
    }
}

static bool needs_agreement(const fsdp_request *request)
{
    const fsdp_context *ctx = request->ctx;

    return ctx->size > 1 && (ctx->config.verify != FSDP_VERIFY_OFF || request->call.forced);
}

static fsdp_status start(fsdp_request *request)
{
    if (request->verdict.status == FSDP_OK && request->algorithm != NULL && request->algorithm->prepare != NULL) {
        take_local_verdict(request, request->algorithm->prepare(request));
    }
    if (needs_agreement(request)) {
        request->state = FSDPI_REQUEST_AGREEING;
        return post_agreement(request);
    }
    if (request->verdict.status != FSDP_OK) {
        return fsdpi_record(request->ctx, (fsdp_status)request->verdict.status, "%s", request->verdict.text);
    }
    request->state = FSDPI_REQUEST_MOVING;
    return FSDP_OK;
}

/* Computes on the round whose messages are complete, then posts the next one. */
static fsdp_status next_round(fsdp_request *request)
{
    if (request->round > 0 && request->algorithm->finish != NULL) {
        request->algorithm->finish(request, request->round - 1);
    }
    if (request->round < request->rounds) {
        FSDP_TRY(request->algorithm->post(request, request->round));
    }
    request->round++;
    return FSDP_OK;
}

/* One step of the operation at the head. `over` is set when it has come to its end. */
static fsdp_status step_head(fsdp_request *request, bool *over)
{
    switch (request->state) {
    case FSDPI_REQUEST_QUEUED:
        return start(request);
    case FSDPI_REQUEST_AGREEING:
        if (all_agree(request)) {
            request->state = FSDPI_REQUEST_MOVING;
            return FSDP_OK;
        }
        request->state = FSDPI_REQUEST_EXCHANGING_DETAILS;
        return post_details(request);
    case FSDPI_REQUEST_EXCHANGING_DETAILS:
        return common_failure(request);
    case FSDPI_REQUEST_MOVING:
        *over = request->round > request->rounds || request->rounds == 0;
        return *over ? FSDP_OK : next_round(request);
    case FSDPI_REQUEST_FREE:
    case FSDPI_REQUEST_DONE:
        break;
    }
    return FSDP_OK;
}

/* Takes the operation at the head as far as it gets without waiting. True when it is over. */
static bool advance_head(fsdp_context *ctx)
{
    for (;;) {
        int         complete = 0;
        bool        over     = false;
        fsdp_status status   = ctx->broken != FSDP_OK ? record_broken(ctx) : messages_complete(ctx, &complete);

        if (status == FSDP_OK && !complete) {
            return false;
        }
        if (status == FSDP_OK) {
            status = step_head(ctx->queue.head, &over);
        }
        if (status != FSDP_OK || over) {
            complete_head(ctx, status);
            return true;
        }
    }
}

static void advance(fsdp_context *ctx)
{
    while (ctx->queue.head != NULL && advance_head(ctx)) {
    }
}

/* ---- issuing and ending ------------------------------------------------------------------------------------------ */

fsdp_status fsdpi_issue(fsdp_context *ctx, const fsdpi_call *call, const fsdpi_algorithm *algorithm, fsdp_status status,
                        fsdp_request **request)
{
    fsdp_status outcome = FSDP_OK;

    (void)pthread_mutex_lock(&ctx->lock);
    fsdp_request *made = ctx->broken == FSDP_OK ? take_free(ctx) : NULL;
    if (made == NULL) {
        outcome = ctx->broken != FSDP_OK ? record_broken(ctx) : FSDP_ERR_MEMORY;
    } else {
        made->algorithm = algorithm;
        made->call      = *call;
        made->state     = FSDPI_REQUEST_QUEUED;
        made->status    = FSDP_OK;
        made->sequence  = ctx->queue.sequence++;
        made->round     = 0;
        made->rounds    = 0;
        made->error[0]  = '\0';
        take_local_verdict(made, status);
        enqueue(&ctx->queue, made);
        advance(ctx);
        *request = made;
    }
    (void)pthread_mutex_unlock(&ctx->lock);
    return outcome;
}

/* Everything queued ends with FSDP_ERR_TIMEOUT: the messages of the head can be neither completed nor taken back. */
static void give_up(fsdp_request *request)
{
    fsdp_context *ctx = request->ctx;
    char          what[FSDPI_DETAIL_BYTES];

    describe(ctx, &ctx->queue.head->call, what, sizeof what);
    ctx->broken = FSDP_ERR_TIMEOUT;
    (void)fsdpi_fail(
        ctx, FSDP_ERR_TIMEOUT,
        "%s (operation %" PRIu64 ") has not ended within FSDP_TIMEOUT_S=%d seconds while %s; look for a rank "
        "that died or made another call, and finalize the context",
        what, ctx->queue.head->sequence, ctx->config.timeout_s,
        ctx->queue.head->state == FSDPI_REQUEST_MOVING ? "data moved" : "ranks were still to make this call");
    while (ctx->queue.head != NULL) {
        complete_head(ctx, FSDP_ERR_TIMEOUT);
    }
}

/* Releases a request that is done, and makes its error the context's last. */
static fsdp_status end_request(fsdp_request *request)
{
    fsdp_context *ctx = request->ctx;

    if (request->status != FSDP_OK && strcmp(ctx->error, request->error) != 0) {
        (void)fsdpi_record(ctx, request->status, "%s", request->error);
    }
    put_free(&ctx->queue, request);
    return request->status;
}

static fsdp_status ended_before(const fsdp_request *request)
{
    return fsdpi_fail(request->ctx, FSDP_ERR_STATE, "this request has been ended before; wait for each request once");
}

fsdp_status fsdp_wait(fsdp_request *request)
{
    fsdp_status  status = FSDP_OK;
    const double begin  = fsdpi_seconds();
    bool         done   = false;

    if (request == NULL) {
        return FSDP_OK;
    }
    fsdp_context *ctx = request->ctx;
    for (unsigned polls = 0; !done; polls++) {
        (void)pthread_mutex_lock(&ctx->lock);
        const double waited = fsdpi_seconds() - begin;
        if (request->state == FSDPI_REQUEST_FREE) {
            status = ended_before(request);
            done   = true;
        } else {
            advance(ctx);
            if (request->state != FSDPI_REQUEST_DONE && ctx->config.timeout_s > 0 && waited > ctx->config.timeout_s) {
                give_up(request);
            }
            done   = request->state == FSDPI_REQUEST_DONE;
            status = done ? end_request(request) : FSDP_OK;
        }
        ctx->wait_seconds += done ? fsdpi_seconds() - begin : 0.0;
        (void)pthread_mutex_unlock(&ctx->lock);
        if (!done) {
            fsdpi_back_off(polls, waited);
        }
    }
    return status;
}

fsdp_status fsdp_test(fsdp_request *request, int *done)
{
    fsdp_status status = FSDP_OK;

    if (done == NULL) {
        return fsdpi_fail(request != NULL ? request->ctx : NULL, FSDP_ERR_ARG, "fsdp_test: `done` is NULL");
    }
    *done = 1;
    if (request == NULL) {
        return FSDP_OK;
    }
    fsdp_context *ctx = request->ctx;
    (void)pthread_mutex_lock(&ctx->lock);
    if (request->state == FSDPI_REQUEST_FREE) {
        status = ended_before(request);
    } else {
        advance(ctx);
        *done  = request->state == FSDPI_REQUEST_DONE;
        status = *done ? end_request(request) : FSDP_OK;
    }
    (void)pthread_mutex_unlock(&ctx->lock);
    return status;
}

fsdp_status fsdp_wait_all(size_t count, fsdp_request *const *requests)
{
    fsdp_status status = FSDP_OK;

    if (count > 0 && requests == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_wait_all: %zu requests, but the array is NULL", count);
    }
    for (size_t i = 0; i < count; i++) {
        const fsdp_status one = fsdp_wait(requests[i]);
        status                = status == FSDP_OK ? one : status;
    }
    return status;
}

fsdp_status fsdpi_run(fsdp_context *ctx, const fsdpi_call *call, const fsdpi_algorithm *algorithm, fsdp_status status)
{
    fsdp_request *request = NULL;

    FSDP_TRY(fsdpi_issue(ctx, call, algorithm, status, &request));
    return fsdp_wait(request);
}

fsdp_status fsdpi_agree(fsdp_context *ctx, const char *name, const char *label, uint64_t salt, fsdp_status status,
                        bool forced)
{
    const fsdpi_call call = {.name = name, .label = label, .salt = salt, .forced = forced};

    return fsdpi_run(ctx, &call, NULL, status);
}

fsdp_status fsdp_agree(fsdp_context *ctx, fsdp_status status, const char *detail)
{
    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_agree: the context is NULL");
    }
    if (status != FSDP_OK) {
        (void)fsdpi_record(ctx, status, "%.200s", detail != NULL ? detail : fsdp_status_text(status));
    }
    return fsdpi_agree(ctx, "agree", NULL, 0, status, true);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

size_t fsdpi_queue_bookkeeping(void)
{
    return fsdpi_alloc_size(sizeof(request_block)) + fsdpi_alloc_size(MESSAGES_AT_FIRST * sizeof(MPI_Request));
}

fsdp_status fsdpi_queue_open(fsdp_context *ctx)
{
    MPI_Request *first;

    FSDP_TRY(make_requests(ctx));
    FSDP_TRY(next_message(ctx, &first)); /* so that the array is there from the beginning */
    ctx->queue.n_messages = 0;
    return FSDP_OK;
}

size_t fsdpi_queue_drain(fsdp_context *ctx)
{
    const double begin = fsdpi_seconds();

    for (unsigned polls = 0; ctx->queue.head != NULL; polls++) {
        const double waited = fsdpi_seconds() - begin;

        advance(ctx);
        if (ctx->queue.head != NULL && ctx->config.timeout_s > 0 && waited > ctx->config.timeout_s) {
            give_up(ctx->queue.head);
        }
        fsdpi_back_off(polls, waited);
    }
    return ctx->queue.n_made - ctx->queue.n_free;
}

void fsdpi_queue_close(fsdp_context *ctx)
{
    while (ctx->queue.blocks != NULL) {
        request_block *block = ctx->queue.blocks;

        ctx->queue.blocks = block->next;
        fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, block, sizeof *block);
    }
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, ctx->queue.messages, ctx->queue.capacity * sizeof(MPI_Request));
    ctx->queue.messages = NULL;
}
