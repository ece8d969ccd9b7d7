#include "lib/progress/queue.h"

#include <stdio.h>

#include "lib/base/error.h"
#include "lib/progress/agreement.h"
#include "lib/progress/inquest.h"
#include "lib/progress/queue_inside.h"
#include "lib/sync/trace.h"

/* ---- issuing and ending ------------------------------------------------------------------------------------------ */

void fsdpi_line_append(fsdpi_line *line, fsdp_request *request)
{
    request->next = NULL;
    if (line->tail != NULL) {
        line->tail->next = request;
    } else {
        atomic_store_explicit(&line->head, request, memory_order_release);
    }
    line->tail = request;
}

fsdp_request *fsdpi_line_remove(fsdpi_line *line)
{
    fsdp_request *request = atomic_load_explicit(&line->head, memory_order_relaxed);

    line->tail = request->next != NULL ? line->tail : NULL;
    atomic_store_explicit(&line->head, request->next, memory_order_release);
    return request;
}

void fsdpi_line_end(fsdpi_queue *queue, int lane)
{
    const fsdp_request *request = fsdpi_line_remove(&queue->lines[lane]);

    if (request->algorithm != NULL) {
        queue->last_algorithm = request->algorithm->name;
    }
}

/* What others may have found too is printed when they have told: by whoever carries the operation out. */
static void keep_unprinted(fsdp_request *request)
{
    request->unprinted = fsdpi_error_take_unprinted();
    if (request->unprinted) {
        (void)snprintf(request->error, sizeof request->error, "%s", fsdpi_error_recorded(request->ctx));
    }
}

/* As it is before anything has been done for its call. */
static void reset(fsdpi_queue *queue, fsdp_request *request)
{
    request->lane        = &queue->engine.lanes[FSDPI_LANE_SHORT];
    request->algorithm   = NULL;
    request->status      = FSDP_OK;
    request->sequence    = queue->sequence++;
    request->at          = 0;
    request->stage       = 0;
    request->step        = 0;
    request->flags       = 0;
    request->is_still    = false;
    request->is_at_once  = false;
    request->is_recorded = false;
    request->in_halves   = false;
    request->is_put_off  = false;
    request->is_copied   = false;
    request->is_cold     = false;
    request->closing     = false;
    request->aside       = false;
    request->unprinted   = false;
    request->error[0]    = '\0';
    request->issued      = fsdpi_trace_now(queue->engine.trace);
    atomic_store_explicit(&request->state, FSDPI_REQUEST_QUEUED, memory_order_relaxed);
}

static void fill(fsdpi_queue *queue, fsdp_request *request, const fsdpi_call *call, fsdp_status status, bool blocking)
{
    request->call        = *call;
    request->ops         = call->on_device ? queue->device_ops : NULL;
    request->is_blocking = blocking;
    request->era         = 0;
    request->marks       = 0;
    reset(queue, request);
    if (request->ops != NULL && request->ops->issue != NULL && status == FSDP_OK) {
        status = request->ops->issue(request);
    }
    fsdpi_take_local_verdict(request, status);
    if (status != FSDP_OK) {
        keep_unprinted(request);
    }
}

/* Whose caller waits anyway tells that; else another thread may wait beside it. */
void fsdpi_queue_record(fsdpi_queue *queue, fsdp_request *request, bool begun)
{
    const fsdpi_call *call = &request->call;

    request->is_recorded = true;
    fsdpi_recorder_issue(
        queue->engine.recorder,
        &(fsdpi_recorder_call){.sequence   = request->sequence,
                               .collective = call->collective != NULL ? call->collective->name : "agreement",
                               .call       = call->name,
                               .label      = call->label,
                               .count      = call->count,
                               .bytes      = call->in_bytes > call->out_bytes ? call->in_bytes : call->out_bytes,
                               .dtype      = call->has_data ? (int)call->dtype : -1,
                               .op         = call->has_op ? (int)call->op : -1,
                               .root       = call->has_root ? call->root : -1,
                               .marks      = &request->marks},
        begun, request->is_blocking,
        !request->is_blocking && atomic_load_explicit(&queue->waiters, memory_order_relaxed) > 0);
}

/*
 * Enqueues; `run` is set where the calling thread is to carry it out. If it also waits for it, the operation is recorded only when
 * the peers have been told: see record_late(). Inlined, since every operation passes through it.
 */
static inline __attribute__((always_inline)) fsdp_status
issue(fsdpi_queue *queue, const fsdpi_call *call, fsdp_status status, bool blocking, bool *run, fsdp_request **request)
{
    const fsdp_status broken = queue->engine.core->broken;
    if (broken != FSDP_OK) {
        fsdpi_error_print(queue->engine.core->ctx, status);
        (void)fsdpi_record_broken(queue, broken);
        return broken;
    }
    fsdpi_queue_lock(queue);
    fsdp_request *made = fsdpi_request_take(queue, call->is_reserved);
    if (made == NULL) {
        fsdpi_queue_unlock(queue);
        return FSDP_ERR_MEMORY;
    }
    fill(queue, made, call, status, blocking);
    const bool at_once = blocking && fsdpi_oldest(queue) == NULL;
    *run               = !queue->running && (!queue->has_thread || at_once);
    queue->running     = queue->running || *run;
    made->is_at_once   = *run && at_once;
    if (!made->is_at_once) {
        fsdpi_queue_record(queue, made, false);
    }
    fsdpi_line_append(&queue->lines[FSDPI_LANE_SHORT], made); /* from here on, whoever is at work may begin with it */
    fsdpi_queue_unlock(queue);
    if (!*run && !blocking && queue->has_thread) {
        fsdpi_ring(queue);
    }
    *request = made;
    return FSDP_OK;
}

fsdp_status fsdpi_queue_issue(fsdpi_queue *queue, const fsdpi_call *call, fsdp_status status, fsdp_request **request)
{
    bool run = false;

    FSDP_TRY(issue(queue, call, status, false, &run, request));
    if (run) {
        (void)fsdpi_advance(queue, NULL, false);
        fsdpi_hand_back(queue);
    }
    return FSDP_OK;
}

/* Releases a request that is done, and makes its error the context's last. `running`: and hands back the work. */
static fsdp_status end_request(fsdp_request *request, bool running)
{
    fsdpi_queue *queue  = request->queue;
    fsdp_status  status = request->status;

    if (status != FSDP_OK) {
        (void)fsdpi_record(queue->engine.core->ctx, status, "%s", request->error);
    } else if (request->ops != NULL && request->ops->hand_over != NULL) {
        status = request->ops->hand_over(request);
    }
    fsdpi_queue_lock(queue);
    if (request->is_at_once) { /* still at the head of its lane */
        fsdpi_line_end(queue, FSDPI_LANE_SHORT);
    }
    queue->running = queue->running && !running;
    fsdpi_request_put(queue, request);
    const bool passed = running && fsdpi_was_passed_over(queue);
    fsdpi_queue_unlock(queue);
    if (passed) {
        fsdpi_ring(queue);
    }
    return status;
}

static fsdp_status ended_before(const fsdp_request *request)
{
    return fsdpi_fail(request->ctx, FSDP_ERR_STATE, "this request has been ended before; wait for each request once");
}

/* ---- the same call again ------------------------------------------------------------------------------------------- */

/* Never 0. */
static uint64_t key_of(const fsdpi_collective *collective, size_t count, fsdp_dtype dtype, fsdp_redop op)
{
    return ((uintptr_t)collective ^ count * 0x9e3779b97f4a7c15u ^ (uint64_t)dtype << 56 ^ (uint64_t)op << 52) | 1;
}

/* What has just been done may come again; but where it went another way, as when a peer did not offer its data, its input may have moved. */
static void remember(fsdpi_queue *queue, fsdp_request *request)
{
    const fsdpi_call *call = &request->call;

    if (!request->algorithm->is_rider || call->is_step || call->label != NULL || call->has_root || call->on_device) {
        return;
    }
    request->era = atomic_load_explicit(&queue->era, memory_order_relaxed) + 1;
    atomic_store_explicit(&queue->again, key_of(call->collective, call->count, call->dtype, call->op),
                          memory_order_relaxed);
}

void fsdpi_queue_forget_calls(fsdpi_queue *queue)
{
    atomic_fetch_add_explicit(&queue->era, 1, memory_order_relaxed);
}

/* What its caller waits for, who carries it out as well where `run` says so, and tries that in one step where it is `brief`. */
static inline __attribute__((always_inline)) fsdp_status finish(fsdpi_queue *queue, fsdp_request *request, bool run,
                                                                bool brief)
{
    if (brief) {
        fsdpi_carry_out_briefly(queue, request);
    }
    if (run && !fsdpi_is_done(request)) {
        (void)fsdpi_advance(queue, request, false);
    }
    if (!fsdpi_is_done(request)) {
        fsdpi_wait_for(request, run);
    }
    if (brief && request->era == 0 && request->status == FSDP_OK) {
        remember(queue, request);
    }
    fsdpi_recorder_go_on(queue->engine.recorder, request->sequence);
    return end_request(request, run);
}

fsdp_status fsdpi_queue_run(fsdpi_queue *queue, const fsdpi_call *call, fsdp_status status)
{
    fsdp_request *request = NULL;
    bool          run     = false;

    FSDP_TRY(issue(queue, call, status, true, &run, &request));
    return finish(queue, request, run, run && fsdpi_agreement_is_brief(request)); /* else another thread may be at it */
}

static bool is_same(const fsdpi_call *a, const fsdpi_plain_call *b)
{
    return a->collective == b->collective && a->count == b->count && a->dtype == b->dtype && a->op == b->op;
}

/* The request that has served it, which is the first of those that are free: nothing is before it then, and nobody at work. */
static fsdp_request *take_again(fsdpi_queue *queue, const fsdpi_plain_call *call, fsdpi_takes_memory *takes_memory)
{
    fsdpi_queue_lock(queue);
    fsdp_request  *request = queue->ordinary.free_head;
    const uint64_t era     = atomic_load_explicit(&queue->era, memory_order_relaxed) + 1;
    const bool     again = request != NULL && request->era == era && is_same(&request->call, call) && !queue->running &&
                       fsdpi_oldest(queue) == NULL && takes_memory(request, call);
    if (again) {
        (void)fsdpi_request_take(queue, false);
        reset(queue, request); /* its verdict is still that nothing is wrong here */
        request->is_at_once = true;
        queue->running      = true;
        fsdpi_line_append(&queue->lines[FSDPI_LANE_SHORT], request);
    }
    fsdpi_queue_unlock(queue);
    return again ? request : NULL;
}

bool fsdpi_queue_run_again(fsdpi_queue *queue, const fsdpi_plain_call *call, fsdpi_takes_memory *takes_memory,
                           fsdp_status *status)
{
    if (atomic_load_explicit(&queue->again, memory_order_relaxed) !=
            key_of(call->collective, call->count, call->dtype, call->op) ||
        queue->engine.core->broken != FSDP_OK) {
        return false;
    }
    fsdp_request *request = take_again(queue, call, takes_memory);
    if (request != NULL) {
        *status = finish(queue, request, true, true);
    }
    return request != NULL;
}

fsdp_status fsdp_wait(fsdp_request *request)
{
    if (request == NULL) {
        return FSDP_OK;
    }
    if (fsdpi_state_of(request) == FSDPI_REQUEST_FREE) {
        return ended_before(request);
    }
    if (request->engine->core->copy_of != 0) {
        return fsdpi_fail_copy(request->ctx);
    }
    if (!fsdpi_is_done(request)) {
        fsdpi_recorder_wait(request->engine->recorder, request->sequence);
        fsdpi_wait_for(request, false);
        fsdpi_recorder_go_on(request->engine->recorder, request->sequence);
    }
    return end_request(request, false);
}

/* For who asks with fsdp_test(), where there is no thread that does. `moved`: other contexts of this process have. */
static void watch_time(fsdp_request *request, bool moved)
{
    fsdpi_queue *queue = request->queue;

    if (!queue->has_thread && !fsdpi_have_moved(queue, &queue->tests) && !moved && !fsdpi_is_done(request)) {
        (void)fsdpi_inquest_look(queue, &queue->tests);
    }
    if (moved) {
        queue->tests = fsdpi_begin_to_wait(queue);
    }
}

fsdp_status fsdp_test(fsdp_request *request, int *done)
{
    if (done == NULL) {
        return fsdpi_fail(request != NULL ? request->ctx : NULL, FSDP_ERR_ARG, "fsdp_test: `done` is NULL");
    }
    *done = 1;
    if (request == NULL) {
        return FSDP_OK;
    }
    if (fsdpi_state_of(request) == FSDPI_REQUEST_FREE) {
        return ended_before(request);
    }
    if (request->engine->core->copy_of != 0) {
        return fsdpi_fail_copy(request->ctx);
    }
    const bool moved = !fsdpi_is_done(request) && fsdpi_side_work_advance(&request->queue->side_work) == FSDPI_MOVED;
    if (!fsdpi_is_done(request) && fsdpi_take_over(request->queue, false)) {
        if (!fsdpi_advance(request->queue, NULL, false)) {
            fsdpi_messages_progress(&request->lane->messages);
        }
        watch_time(request, moved);
        fsdpi_hand_back(request->queue);
    }
    *done = fsdpi_is_done(request);
    return *done ? end_request(request, false) : FSDP_OK;
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

fsdp_status fsdpi_queue_agree(fsdpi_queue *queue, const char *name, const char *label, uint64_t salt, bool behind,
                              fsdp_status status, bool forced)
{
    const fsdpi_call call = {.name = name, .label = label, .salt = salt, .is_behind = behind};

    const fsdpi_core *core = queue->engine.core;
    if (!forced && core->broken == FSDP_OK && (core->config.verify == FSDP_VERIFY_OFF || core->size == 1)) {
        fsdpi_error_print(core->ctx, status);
        return status;
    }
    return fsdpi_queue_run(queue, &call, status);
}

double fsdpi_queue_wait_seconds(fsdpi_queue *queue)
{
    fsdpi_queue_lock(queue);
    const double seconds = queue->wait_seconds;
    fsdpi_queue_unlock(queue);
    return seconds;
}

double fsdpi_queue_wait_cpu_seconds(fsdpi_queue *queue)
{
    fsdpi_queue_lock(queue);
    const double seconds = queue->wait_cpu_seconds;
    fsdpi_queue_unlock(queue);
    return seconds;
}

const char *fsdpi_queue_last_algorithm(fsdpi_queue *queue)
{
    fsdpi_queue_lock(queue);
    const char *name = queue->last_algorithm;
    fsdpi_queue_unlock(queue);
    return name;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

size_t fsdpi_queue_bookkeeping(void)
{
    return fsdpi_requests_bookkeeping();
}

fsdp_status fsdpi_queue_open(fsdpi_queue *queue)
{
    queue->last_algorithm = "none";
    queue->share          = queue->share > 0.0 ? queue->share : 1.0;
    fsdpi_inquest_open(queue);
    return fsdpi_requests_make(queue);
}

/* As far as they go without waiting, for who waits for something else. */
static fsdpi_progress advance_aside(void *owner)
{
    fsdpi_queue *queue = owner;

    if (!fsdpi_take_over(queue, false)) {
        return FSDPI_FINISHED;
    }
    const uint64_t moves = atomic_load_explicit(&queue->moves, memory_order_relaxed);
    (void)fsdpi_advance(queue, NULL, false);
    const bool moved = atomic_load_explicit(&queue->moves, memory_order_relaxed) != moves;
    fsdpi_inquest_give_sign(queue, moved);
    fsdpi_hand_back(queue);
    return moved ? FSDPI_MOVED : FSDPI_WAITING;
}

void fsdpi_queue_go_without_thread(fsdpi_queue *queue)
{
    queue->side_work = (fsdpi_side_work){.owner = queue, .advance = advance_aside};
    fsdpi_side_work_add(&queue->side_work);
}

/* Nobody carries operations out any more but who calls. */
static void end_progress(fsdpi_queue *queue)
{
    fsdpi_stop_thread(queue);
    fsdpi_side_work_remove(&queue->side_work);
}

static void drain_lane(fsdpi_queue *queue, int lane)
{
    fsdpi_queue_lock(queue);
    fsdp_request *last = queue->lines[lane].tail;
    fsdpi_queue_unlock(queue);
    if (last != NULL && !fsdpi_is_done(last)) {
        fsdpi_wait_for(last, false);
    }
}

void fsdpi_queue_drain(fsdpi_queue *queue)
{
    if (queue->engine.core->copy_of != 0) { /* the thread is not here, nor whoever would carry anything out */
        return;
    }
    drain_lane(queue, FSDPI_LANE_SHORT); /* after which no operation comes into the long one */
    drain_lane(queue, FSDPI_LANE_LONG);
    end_progress(queue);
}

size_t fsdpi_queue_never_ended(const fsdpi_queue *queue)
{
    return queue->ordinary.n_made + queue->reserved.n_made - queue->ordinary.n_free - queue->reserved.n_free;
}

void fsdpi_queue_close(fsdpi_queue *queue)
{
    end_progress(queue);
    fsdpi_inquest_close(queue);
    fsdpi_requests_release(queue);
}
