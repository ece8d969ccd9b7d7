#include "lib/progress/queue.h"

#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/device/memory.h"
#include "lib/progress/agreement.h"
#include "lib/sync/trace.h"

enum { REQUESTS_AT_A_TIME = 32 };

/* A block of requests that are allocated together. */
typedef struct request_block {
    struct request_block *next;
    fsdp_request          requests[REQUESTS_AT_A_TIME];
} request_block;

static int state_of(const fsdp_request *request)
{
    return atomic_load_explicit(&request->state, memory_order_acquire);
}

static void lock(fsdpi_queue *queue)
{
    fsdpi_lock_take(&queue->lock);
}

static void unlock(fsdpi_queue *queue)
{
    fsdpi_lock_give(&queue->lock);
}

/* ---- requests; under the lock ------------------------------------------------------------------------------------ */

static void put_free(fsdpi_queue *queue, fsdp_request *request)
{
    atomic_store_explicit(&request->state, FSDPI_REQUEST_FREE, memory_order_relaxed);
    request->next = NULL;
    if (queue->free_tail != NULL) {
        queue->free_tail->next = request;
    } else {
        queue->free_head = request;
    }
    queue->free_tail = request;
    queue->n_free++;
}

static fsdp_status make_requests(fsdpi_queue *queue)
{
    request_block *block = fsdpi_alloc(queue->engine.core->ctx, FSDP_MEMORY_BOOKKEEPING, sizeof *block);

    if (block == NULL) {
        return FSDP_ERR_MEMORY;
    }
    block->next   = queue->blocks;
    queue->blocks = block;
    for (size_t i = 0; i < REQUESTS_AT_A_TIME; i++) {
        block->requests[i].ctx    = queue->engine.core->ctx;
        block->requests[i].queue  = queue;
        block->requests[i].engine = &queue->engine;
        put_free(queue, &block->requests[i]);
    }
    queue->n_made += REQUESTS_AT_A_TIME;
    return FSDP_OK;
}

/* Some free requests are kept back, so that one just ended is not in use again when it is ended a second time. */
static fsdp_request *take_free(fsdpi_queue *queue)
{
    if (queue->n_free < REQUESTS_AT_A_TIME / 2 && make_requests(queue) != FSDP_OK && queue->n_free == 0) {
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

/* ---- carrying out the head: by one thread at a time, which holds `running` instead of the lock --------------------- */

static fsdp_status record_broken(fsdpi_queue *queue, fsdp_status broken)
{
    (void)fsdpi_record(queue->engine.core->ctx, broken,
                       "the context cannot be used any more since an earlier failure (%s); finalize it",
                       fsdp_status_text(broken));
    return broken;
}

static void trace(const fsdp_request *request)
{
    const fsdpi_call *call = &request->call;

    fsdpi_trace_operation(
        request->engine->trace,
        &(fsdpi_trace_event){.name      = call->collective != NULL ? call->collective->name : "agreement",
                             .label     = call->label,
                             .purpose   = call->name,
                             .algorithm = request->algorithm != NULL ? request->algorithm->name : "none",
                             .sequence  = request->sequence,
                             .issued    = request->issued,
                             .begun     = request->begun,
                             .in_bytes  = call->in_bytes,
                             .out_bytes = call->out_bytes,
                             .status    = request->status});
}

/* It is over: keeps its verdict for whoever waits, and lets the next one begin. */
static void complete_head(fsdpi_queue *queue, fsdp_status status)
{
    fsdp_request *request = queue->head;

    request->status = status;
    if (queue->engine.trace->file != NULL) {
        trace(request);
    }
    if (queue->engine.core->broken == FSDP_OK) {
        queue->engine.messages->n = 0;
    }
    if (request->scratch != NULL) {
        fsdpi_free(queue->engine.core->ctx, FSDP_MEMORY_STAGING, request->scratch, request->scratch_bytes);
        request->scratch = NULL;
    }
    lock(queue);
    queue->head = request->next;
    queue->tail = queue->head != NULL ? queue->tail : NULL;
    if (request->algorithm != NULL) {
        queue->last_algorithm = request->algorithm->name;
    }
    unlock(queue);
    atomic_store_explicit(&request->state, FSDPI_REQUEST_DONE, memory_order_release);
}

static void start(fsdp_request *request)
{
    const fsdpi_collective *collective = request->call.collective;

    request->begun = fsdpi_trace_now(request->engine->trace);
    if (request->verdict.status == FSDP_OK && collective != NULL && collective->prepare != NULL) {
        fsdpi_take_local_verdict(request, collective->prepare(request));
    }
    if (request->ops != NULL && request->ops->begin != NULL && request->verdict.status == FSDP_OK) {
        request->ops->begin(request);
    }
    fsdpi_agreement_post(request);
    atomic_store_explicit(&request->state, FSDPI_REQUEST_ARRIVING, memory_order_relaxed);
}

/* The second agreement: on what has become of it. */
static void agree_at_end(fsdp_request *request)
{
    request->closing = true;
    fsdpi_agreement_post(request);
    atomic_store_explicit(&request->state, FSDPI_REQUEST_ARRIVING, memory_order_relaxed);
}

static fsdp_status end_agreed(fsdp_request *request)
{
    if (request->algorithm->end != NULL) {
        request->algorithm->end(request);
    }
    if (request->verdict.status != FSDP_OK || request->ops == NULL || request->ops->end == NULL) {
        return (fsdp_status)request->verdict.status;
    }
    return request->ops->end(request);
}

static void leave(fsdp_request *request)
{
    fsdpi_milestone_set(request->engine->box, FSDPI_MILESTONE(request->engine->box->number, FSDPI_LEFT));
    atomic_store_explicit(&request->state, FSDPI_REQUEST_LEAVING, memory_order_relaxed);
}

static fsdp_status agreeing(fsdp_request *request, fsdpi_progress *progress)
{
    const fsdpi_collective *collective = request->call.collective;
    bool                    agreed     = false;

    FSDP_TRY(fsdpi_agreement_advance(request, progress, &agreed));
    if (!agreed) {
        return FSDP_OK;
    }
    if (request->closing) {
        *progress = FSDPI_FINISHED;
        return end_agreed(request);
    }
    request->algorithm = collective != NULL && collective->choose != NULL ? collective->choose(request) : NULL;
    if (request->algorithm == NULL) {
        *progress = FSDPI_FINISHED;
    }
    atomic_store_explicit(&request->state, FSDPI_REQUEST_MOVING, memory_order_relaxed);
    return FSDP_OK;
}

static fsdp_status moving(fsdp_request *request, fsdpi_progress *progress)
{
    FSDP_TRY(request->algorithm->advance(request, progress));
    if (*progress == FSDPI_FINISHED && request->algorithm->agrees_at_end) {
        agree_at_end(request);
        *progress = FSDPI_MOVED;
    } else if (*progress == FSDPI_FINISHED && request->algorithm->leaves_together && request->engine->nodes->size > 1) {
        leave(request);
        *progress = FSDPI_MOVED;
    } else if (*progress == FSDPI_FINISHED && request->algorithm->end != NULL) {
        request->algorithm->end(request);
    }
    return FSDP_OK;
}

static fsdp_status leaving(fsdp_request *request, fsdpi_progress *progress)
{
    *progress = FSDPI_WAITING;
    if (fsdpi_milestone_reached(request->engine->box, FSDPI_MILESTONE(request->engine->box->number, FSDPI_LEFT))) {
        *progress = FSDPI_FINISHED;
        if (request->algorithm->end != NULL) {
            request->algorithm->end(request);
        }
    }
    return FSDP_OK;
}

static fsdp_status step(fsdp_request *request, fsdpi_progress *progress)
{
    switch (atomic_load_explicit(&request->state, memory_order_relaxed)) {
    case FSDPI_REQUEST_QUEUED:
        start(request);
        *progress = FSDPI_MOVED;
        return FSDP_OK;
    case FSDPI_REQUEST_EXCHANGING_DETAILS:
        return fsdpi_details_advance(request, progress);
    case FSDPI_REQUEST_MOVING:
        return moving(request, progress);
    case FSDPI_REQUEST_LEAVING:
        return leaving(request, progress);
    default:
        return agreeing(request, progress);
    }
}

/* Only one thread at a time carries operations out; others read it. */
static void count_move(fsdpi_queue *queue)
{
    const uint64_t moves = atomic_load_explicit(&queue->moves, memory_order_relaxed);

    atomic_store_explicit(&queue->moves, moves + 1, memory_order_relaxed);
    queue->naps_in_vain = 0;
}

/* Takes the operation at the head as far as it gets without waiting. True when it is over. */
static bool advance_head(fsdpi_queue *queue)
{
    fsdp_request  *request  = queue->head;
    fsdpi_progress progress = FSDPI_MOVED;
    fsdp_status    status   = FSDP_OK;

    fsdpi_record_into(request->error);
    while (status == FSDP_OK && progress == FSDPI_MOVED) {
        const fsdp_status broken = queue->engine.core->broken;
        status                   = broken != FSDP_OK ? record_broken(queue, broken) : step(request, &progress);
        if (progress != FSDPI_WAITING) {
            count_move(queue);
        }
    }
    fsdpi_record_into(NULL);
    if (status == FSDP_OK && progress == FSDPI_WAITING) {
        return false;
    }
    complete_head(queue, status);
    return true;
}

/* Everything queued ends with FSDP_ERR_TIMEOUT: what the head has begun can be neither completed nor taken back. */
static void give_up(fsdpi_queue *queue)
{
    char what[FSDPI_DETAIL_BYTES], missing[FSDPI_DETAIL_BYTES];

    fsdpi_describe(&queue->head->call, queue->engine.core->size, what, sizeof what);
    fsdpi_describe_missing(queue->head, missing, sizeof missing);
    queue->engine.core->broken = FSDP_ERR_TIMEOUT;
    fsdpi_record_into(queue->head->error);
    (void)fsdpi_fail(queue->engine.core->ctx, FSDP_ERR_TIMEOUT,
                     "%s (operation %" PRIu64 ") has not moved for FSDP_TIMEOUT_S=%d seconds while %s; look for a rank "
                     "that died or made another call, and finalize the context",
                     what, queue->head->sequence, queue->engine.core->config.timeout_s, missing);
    fsdpi_record_into(NULL);
    for (const char *detail = queue->head->error; queue->head != NULL;) {
        fsdp_request *head = queue->head;
        if (head->error != detail) {
            memcpy(head->error, detail, sizeof head->error);
        }
        complete_head(queue, FSDP_ERR_TIMEOUT);
    }
}

static void ring(fsdpi_queue *queue)
{
    (void)atomic_fetch_add(&queue->bell, 1);
    if (atomic_load(&queue->sleeping) != 0) {
        (void)syscall(SYS_futex, &queue->bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

/* Ends a nap of the progress thread between two looks, wherever it takes it: someone waits now. */
static void rouse(fsdpi_queue *queue)
{
    if (atomic_load(&queue->napping) != 0) {
        (void)atomic_fetch_add(&queue->bell, 1);
        (void)syscall(SYS_futex, &queue->bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        fsdpi_mailbox_rouse(queue->engine.box);
    }
}

/* Becomes the thread that carries out the head, if there is one and nobody else does. */
static bool take_over(fsdpi_queue *queue, bool is_progress_thread)
{
    lock(queue);
    const bool taken = !queue->running && queue->head != NULL;
    if (taken) {
        queue->running = true;
    }
    queue->passed_over = queue->passed_over || (is_progress_thread && queue->running && !taken);
    unlock(queue);
    return taken;
}

static bool was_passed_over(fsdpi_queue *queue)
{
    const bool passed = queue->passed_over && queue->head != NULL;

    queue->passed_over = false;
    return passed;
}

static void hand_back(fsdpi_queue *queue)
{
    lock(queue);
    queue->running    = false;
    const bool passed = was_passed_over(queue);
    unlock(queue);
    if (passed) {
        ring(queue);
    }
}

static bool is_queue_empty(fsdpi_queue *queue)
{
    lock(queue);
    const bool empty = queue->head == NULL;
    unlock(queue);
    return empty;
}

/* Carries out what can be, up to the end of `last` or, if that is NULL, of all. False where an operation is left that waits. */
static bool advance(fsdpi_queue *queue, const fsdp_request *last)
{
    while ((last == NULL || state_of(last) != FSDPI_REQUEST_DONE) && !is_queue_empty(queue)) {
        if (!advance_head(queue)) {
            return false;
        }
    }
    return true;
}

/* ---- patience ---------------------------------------------------------------------------------------------------- */

/*
 * A process that was stopped has not waited all that time: its peers could have come, and it could not look. Time between
 * two looks counts up to this many seconds.
 */
static const double MOST_SECONDS_BETWEEN_LOOKS = 1.0;

/* From now on. */
static fsdpi_patience begin_to_wait(const fsdpi_queue *queue)
{
    return (fsdpi_patience){.moves  = atomic_load_explicit(&queue->moves, memory_order_relaxed),
                            .looked = fsdpi_seconds()};
}

/* After each look. True where something has moved since the last one, so that the next is worth while at once. */
static bool have_moved(const fsdpi_queue *queue, fsdpi_patience *patience)
{
    const uint64_t moves = atomic_load_explicit(&queue->moves, memory_order_relaxed);
    const double   now = fsdpi_seconds(), since = now - patience->looked;

    patience->looked = now;
    if (moves != patience->moves) {
        patience->moves  = moves;
        patience->waited = 0;
        patience->looks  = 0;
        return true;
    }
    patience->waited += since < MOST_SECONDS_BETWEEN_LOOKS ? since : MOST_SECONDS_BETWEEN_LOOKS;
    patience->looks++;
    return false;
}

static bool is_over(const fsdpi_queue *queue, const fsdpi_patience *patience)
{
    const int most = queue->engine.core->config.timeout_s;

    return most > 0 && patience->waited > most;
}

/* ---- the progress thread ----------------------------------------------------------------------------------------- */

static bool messages_are_under_way(const fsdpi_queue *queue)
{
    return queue->engine.messages->n > 0 || queue->engine.rails->n_messages > 0;
}

/*
 * For who naps, but not for a message: peers may need MPI to go on here before they come. Not at once: an MPI that finds
 * nothing to do may give its core away (mpi_yield_when_idle), and those who compute there keep it for a whole slice.
 */
static void help_peers(fsdpi_queue *queue)
{
    enum { NAPS_BEFORE = 8 };

    if (queue->naps_in_vain < NAPS_BEFORE) {
        queue->naps_in_vain++;
    } else {
        fsdpi_messages_progress(queue->engine.messages);
    }
}

/* Nothing wakes who waits for a message, so it is polled for longer: a nap makes a short message late. */
static void pause_between_polls(fsdpi_queue *queue, const fsdpi_patience *patience)
{
    static const double NAP = 100e-6, LONG_NAP = 1e-3, MESSAGE_YIELDING_SECONDS = 2e-3;

    const bool   messages = messages_are_under_way(queue);
    const double yielding = messages ? MESSAGE_YIELDING_SECONDS : FSDPI_YIELDING_SECONDS;
    if (fsdpi_back_off(patience->looks, patience->waited, yielding)) {
        return;
    }
    if (!messages) {
        help_peers(queue);
    }
    const double nap = messages || patience->waited < 20e-3 ? NAP : LONG_NAP;
    if (!fsdpi_mailbox_sleep(queue->engine.box, messages ? nap : LONG_NAP)) {
        fsdpi_nap(nap);
    }
}

/* The progress thread's: on the word that it waits for, unless it waits for a message. rouse() ends it. */
static void nap_until_roused(fsdpi_queue *queue, bool messages, double seconds)
{
    static const double   LONGEST = 1e-3; /* where a peer ends it too */
    const struct timespec most    = {.tv_nsec = (long)(seconds * 1e9)};

    atomic_store(&queue->napping, 1);
    const uint32_t bell = atomic_load(&queue->bell);
    if (atomic_load(&queue->waiters) == 0 && !atomic_load(&queue->stop) &&
        (messages || !fsdpi_mailbox_sleep(queue->engine.box, LONGEST))) {
        (void)syscall(SYS_futex, &queue->bell, FUTEX_WAIT_PRIVATE, bell, &most, NULL, 0);
    }
    atomic_store(&queue->napping, 0);
}

/*
 * Between two looks of the progress thread that found nothing to do. It never spins: the core belongs to whoever computes.
 * While messages are under way the next piece is due at any moment, and a nap lets the link run dry, so that for a while the
 * thread only gives way; what takes longer than that is not hurried by looking. Whoever begins to wait ends the nap.
 */
static void pause_between_looks(fsdpi_queue *queue, const fsdpi_patience *patience)
{
    static const double GIVING_WAY_SECONDS = 1e-3, FIRST = 50e-6, LAST = 1000e-6;

    const bool messages = messages_are_under_way(queue);
    if (messages && patience->waited < GIVING_WAY_SECONDS) {
        (void)sched_yield();
        return;
    }
    if (!messages) {
        help_peers(queue);
    }
    const double nap = messages ? patience->waited / 8 : FIRST * (double)patience->looks;
    nap_until_roused(queue, messages, nap < FIRST ? FIRST : nap < LAST ? nap : LAST);
}

static void work(fsdpi_queue *queue)
{
    fsdpi_patience patience = begin_to_wait(queue);

    while (atomic_load(&queue->waiters) == 0 && !is_queue_empty(queue)) {
        (void)advance(queue, NULL);
        if (have_moved(queue, &patience)) {
            continue;
        }
        if (is_over(queue, &patience)) {
            give_up(queue);
        } else {
            pause_between_looks(queue, &patience);
        }
    }
    atomic_store(&queue->thread_nanoseconds, fsdpi_thread_nanoseconds());
}

/* As the kernel has it since Linux 3.14; the C library does not. */
typedef struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t  nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
} scheduling;

/*
 * This thread works for some microseconds at a time, and late it is of no use: where computing keeps all cores busy, a
 * short slice (Linux 6.12; else nothing happens) lets it come first without giving it a larger share.
 */
static void ask_for_short_slices(void)
{
    enum { SLICE_NANOSECONDS = 100000 };
    const scheduling wish = {.size = sizeof wish, .runtime = SLICE_NANOSECONDS};

    (void)prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
    (void)syscall(SYS_sched_setattr, 0, &wish, 0);
}

/* Works only while no other thread waits for the queue. */
static void *progress_thread(void *context)
{
    fsdpi_queue *queue = context;

    (void)pthread_setname_np(pthread_self(), "fsdp-progress");
    ask_for_short_slices();
    while (!atomic_load(&queue->stop)) {
        atomic_store(&queue->sleeping, 1);
        const uint32_t bell = atomic_load(&queue->bell);
        if (atomic_load(&queue->waiters) == 0 && take_over(queue, true)) {
            atomic_store(&queue->sleeping, 0);
            work(queue);
            hand_back(queue);
        } else if (!atomic_load(&queue->stop)) {
            (void)syscall(SYS_futex, &queue->bell, FUTEX_WAIT_PRIVATE, bell, NULL, NULL, 0);
        }
    }
    return NULL;
}

fsdp_status fsdpi_queue_start_thread(fsdpi_queue *queue, const fsdpi_binding *binding)
{
    if (pthread_create(&queue->thread, NULL, progress_thread, queue) != 0) {
        return fsdpi_fail(queue->engine.core->ctx, FSDP_ERR_MEMORY,
                          "the progress thread cannot be started; set FSDP_PROGRESS=inline");
    }
    fsdpi_bind_thread(binding, queue->thread);
    queue->has_thread = true;
    return FSDP_OK;
}

static void stop_thread(fsdpi_queue *queue)
{
    if (!queue->has_thread) {
        return;
    }
    atomic_store(&queue->stop, true);
    ring(queue);
    (void)pthread_join(queue->thread, NULL);
    queue->has_thread = false;
}

/* ---- issuing and ending ------------------------------------------------------------------------------------------ */

static void fill(fsdpi_queue *queue, fsdp_request *request, const fsdpi_call *call, fsdp_status status)
{
    request->call      = *call;
    request->ops       = call->on_device ? queue->device_ops : NULL;
    request->algorithm = NULL;
    request->status    = FSDP_OK;
    request->sequence  = queue->sequence++;
    request->at        = 0;
    request->stage     = 0;
    request->step      = 0;
    request->flags     = 0;
    request->closing   = false;
    request->aside     = false;
    request->error[0]  = '\0';
    request->issued    = fsdpi_trace_now(queue->engine.trace);
    if (request->ops != NULL && request->ops->issue != NULL && status == FSDP_OK) {
        status = request->ops->issue(request);
    }
    fsdpi_take_local_verdict(request, status);
    atomic_store_explicit(&request->state, FSDPI_REQUEST_QUEUED, memory_order_relaxed);
}

/* Enqueues; `run` is set where the calling thread is to carry it out. */
static fsdp_status issue(fsdpi_queue *queue, const fsdpi_call *call, fsdp_status status, bool blocking, bool *run,
                         fsdp_request **request)
{
    const fsdp_status broken = queue->engine.core->broken;
    if (broken != FSDP_OK) {
        return record_broken(queue, broken);
    }
    lock(queue);
    fsdp_request *made = take_free(queue);
    if (made == NULL) {
        unlock(queue);
        return FSDP_ERR_MEMORY;
    }
    fill(queue, made, call, status);
    enqueue(queue, made);
    *run           = !queue->running && (!queue->has_thread || (blocking && queue->head == made));
    queue->running = queue->running || *run;
    unlock(queue);
    if (!*run && !blocking && queue->has_thread) {
        ring(queue);
    }
    *request = made;
    return FSDP_OK;
}

fsdp_status fsdpi_queue_issue(fsdpi_queue *queue, const fsdpi_call *call, fsdp_status status, fsdp_request **request)
{
    bool run = false;

    FSDP_TRY(issue(queue, call, status, false, &run, request));
    if (run) {
        (void)advance(queue, NULL);
        hand_back(queue);
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
    lock(queue);
    queue->running = queue->running && !running;
    put_free(queue, request);
    const bool passed = running && was_passed_over(queue);
    unlock(queue);
    if (passed) {
        ring(queue);
    }
    return status;
}

static fsdp_status ended_before(const fsdp_request *request)
{
    return fsdpi_fail(request->ctx, FSDP_ERR_STATE, "this request has been ended before; wait for each request once");
}

/* One look: carries out what can be, and gives up when the time is over. */
static void wait_once(fsdp_request *request, bool running, fsdpi_patience *patience)
{
    fsdpi_queue *queue = request->queue;

    if (running || take_over(queue, false)) {
        (void)advance(queue, request);
        const bool moved = have_moved(queue, patience);
        if (state_of(request) != FSDPI_REQUEST_DONE && is_over(queue, patience)) {
            give_up(queue);
        } else if (state_of(request) != FSDPI_REQUEST_DONE && !moved) {
            pause_between_polls(queue, patience);
        }
        if (!running) {
            hand_back(queue);
        }
        return;
    }
    (void)have_moved(queue, patience);
    rouse(queue);
    if (!fsdpi_back_off(patience->looks, patience->waited, FSDPI_YIELDING_SECONDS)) {
        fsdpi_nap(50e-6);
    }
}

/* Time is only taken once the first look has not been enough: the shortest operations cost less than asking for it. */
static void wait_for(fsdp_request *request, bool running)
{
    fsdpi_queue   *queue    = request->queue;
    fsdpi_patience patience = begin_to_wait(queue);
    const double   begin    = patience.looked;

    (void)atomic_fetch_add(&queue->waiters, 1);
    while (state_of(request) != FSDPI_REQUEST_DONE) {
        wait_once(request, running, &patience);
    }
    lock(queue);
    queue->wait_seconds += fsdpi_seconds() - begin;
    unlock(queue);
    if (atomic_fetch_sub(&queue->waiters, 1) == 1 && queue->has_thread && !is_queue_empty(queue)) {
        ring(queue);
    }
}

fsdp_status fsdpi_queue_run(fsdpi_queue *queue, const fsdpi_call *call, fsdp_status status)
{
    fsdp_request *request = NULL;
    bool          run     = false;

    FSDP_TRY(issue(queue, call, status, true, &run, &request));
    while (run && state_of(request) != FSDPI_REQUEST_DONE && advance_head(queue)) {
    }
    if (state_of(request) != FSDPI_REQUEST_DONE) {
        wait_for(request, run);
    }
    return end_request(request, run);
}

fsdp_status fsdp_wait(fsdp_request *request)
{
    if (request == NULL) {
        return FSDP_OK;
    }
    if (state_of(request) == FSDPI_REQUEST_FREE) {
        return ended_before(request);
    }
    if (state_of(request) != FSDPI_REQUEST_DONE) {
        wait_for(request, false);
    }
    return end_request(request, false);
}

/* For who asks with fsdp_test(), where there is no thread that does. */
static void watch_time(fsdp_request *request)
{
    fsdpi_queue *queue = request->queue;

    if (!queue->has_thread && !have_moved(queue, &queue->tests) && state_of(request) != FSDPI_REQUEST_DONE &&
        is_over(queue, &queue->tests)) {
        give_up(queue);
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
    if (state_of(request) == FSDPI_REQUEST_FREE) {
        return ended_before(request);
    }
    if (state_of(request) != FSDPI_REQUEST_DONE && take_over(request->queue, false)) {
        if (!advance(request->queue, NULL)) {
            fsdpi_messages_progress(request->engine->messages);
        }
        watch_time(request);
        hand_back(request->queue);
    }
    *done = state_of(request) == FSDPI_REQUEST_DONE;
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

fsdp_status fsdpi_queue_agree(fsdpi_queue *queue, const char *name, const char *label, uint64_t salt,
                              fsdp_status status, bool forced)
{
    const fsdpi_call call = {.name = name, .label = label, .salt = salt};

    const fsdpi_core *core = queue->engine.core;
    if (!forced && core->broken == FSDP_OK && (core->config.verify == FSDP_VERIFY_OFF || core->size == 1)) {
        return status;
    }
    return fsdpi_queue_run(queue, &call, status);
}

double fsdpi_queue_wait_seconds(fsdpi_queue *queue)
{
    lock(queue);
    const double seconds = queue->wait_seconds;
    unlock(queue);
    return seconds;
}

const char *fsdpi_queue_last_algorithm(fsdpi_queue *queue)
{
    lock(queue);
    const char *name = queue->last_algorithm;
    unlock(queue);
    return name;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

size_t fsdpi_queue_bookkeeping(void)
{
    return fsdpi_alloc_size(sizeof(request_block));
}

fsdp_status fsdpi_queue_open(fsdpi_queue *queue)
{
    queue->last_algorithm = "none";
    return make_requests(queue);
}

size_t fsdpi_queue_drain(fsdpi_queue *queue)
{
    lock(queue);
    fsdp_request *last = queue->tail;
    unlock(queue);
    if (last != NULL && state_of(last) != FSDPI_REQUEST_DONE) {
        wait_for(last, false);
    }
    stop_thread(queue);
    return queue->n_made - queue->n_free;
}

/* Whatever memory it has served last. */
static void release(const fsdpi_queue *queue, fsdp_request *request)
{
    if (queue->device_ops != NULL && queue->device_ops->release != NULL) {
        queue->device_ops->release(request);
    }
}

void fsdpi_queue_close(fsdpi_queue *queue)
{
    stop_thread(queue);
    while (queue->blocks != NULL) {
        request_block *block = queue->blocks;

        for (size_t i = 0; i < REQUESTS_AT_A_TIME; i++) {
            release(queue, &block->requests[i]);
        }
        queue->blocks = block->next;
        fsdpi_free(queue->engine.core->ctx, FSDP_MEMORY_BOOKKEEPING, block, sizeof *block);
    }
}
