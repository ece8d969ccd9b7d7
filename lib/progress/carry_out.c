/*
 * Carries out the operations at the heads of the two lanes, by one thread at a time. Their states are steps that never block:
 * queued, then the agreement, in the other lane a meeting, the steps of its algorithm, and leaving.
 */
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/device/memory.h"
#include "lib/progress/agreement.h"
#include "lib/progress/change_lanes.h"
#include "lib/progress/inquest.h"
#include "lib/progress/inquest_words.h"
#include "lib/progress/queue_inside.h"
#include "lib/record/dump.h"
#include "lib/sync/trace.h"

fsdp_status fsdpi_record_broken(fsdpi_queue *queue, fsdp_status broken)
{
    char why[FSDPI_DETAIL_BYTES];

    if (queue->engine.core->copy_of != 0) {
        return fsdpi_fail_copy(queue->engine.core->ctx);
    }
    fsdpi_inquest_describe(queue, broken, why, sizeof why);
    (void)fsdpi_record(queue->engine.core->ctx, broken,
                       "the context cannot be used any more since an earlier failure (%s); finalize it", why);
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

/* Its issuer may have left that for later: see record_late(). */
static void record_if_not_yet(fsdpi_queue *queue, fsdp_request *request)
{
    if (!request->is_recorded) {
        fsdpi_queue_record(queue, request, true);
    }
}

/* It is over since `ended`, in the recorder's ticks: keeps its verdict for whoever waits, and lets the next one begin. */
static void complete_head_since(fsdpi_queue *queue, int lane, fsdp_status status, uint64_t ended)
{
    fsdp_request *request = fsdpi_head(queue, lane);

    request->status = status;
    if (request->unprinted) { /* the others have not come to hear of it */
        request->unprinted = false;
        fsdpi_log(queue->engine.core->ctx, FSDP_LOG_ERROR, "%s (%s)", request->verdict.text,
                  fsdp_status_name((fsdp_status)request->verdict.status));
    }
    if (queue->engine.trace->file != NULL) {
        trace(request);
    }
    record_if_not_yet(queue, request);
    fsdpi_recorder_end(queue->engine.recorder, request->sequence,
                       request->algorithm != NULL ? request->algorithm->name : NULL, status, ended);
    if (status == FSDP_ERR_MISMATCH) {
        fsdpi_dump_mismatch(queue->engine.recorder, request->error);
    }
    if (queue->engine.core->broken == FSDP_OK) {
        request->lane->messages.n = 0;
    }
    if (request->scratch != NULL) {
        fsdpi_free(queue->engine.core->ctx, FSDP_MEMORY_STAGING, request->scratch, request->scratch_bytes);
        request->scratch = NULL;
    }
    request->is_at_once = request->is_at_once && lane == FSDPI_LANE_SHORT && status == FSDP_OK;
    if (!request->is_at_once) { /* else its issuer does that, who holds the work until then */
        fsdpi_queue_lock(queue);
        fsdpi_line_end(queue, lane);
        fsdpi_queue_unlock(queue);
    }
    atomic_store_explicit(&request->state, FSDPI_REQUEST_DONE, memory_order_release);
}

static void complete_head(fsdpi_queue *queue, int lane, fsdp_status status)
{
    complete_head_since(queue, lane, status, fsdpi_ticks(queue->engine.recorder->clock));
}

static void post_letter(fsdp_request *request)
{
    fsdpi_agreement_post(request);
    atomic_store_explicit(&request->state, FSDPI_REQUEST_ARRIVING, memory_order_relaxed);
}

static void start(fsdp_request *request)
{
    const fsdpi_collective *collective = request->call.collective;

    request->begun = fsdpi_trace_now(request->engine->trace);
    if (request->is_recorded) {
        fsdpi_recorder_begin(request->engine->recorder, request->sequence);
    }
    if (request->verdict.status == FSDP_OK && collective != NULL && collective->prepare != NULL) {
        fsdpi_take_local_verdict(request, collective->prepare(request));
    }
    post_letter(request);
}

/* The second agreement: on what has become of it. */
static void agree_at_end(fsdp_request *request)
{
    request->closing = true;
    post_letter(request);
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
    fsdpi_mailbox *box = &request->lane->box;

    fsdpi_milestone_set(box, FSDPI_MILESTONE(box->number, FSDPI_LEFT));
    atomic_store_explicit(&request->state, FSDPI_REQUEST_LEAVING, memory_order_relaxed);
}

static fsdp_status moving(fsdp_request *request, fsdpi_progress *progress)
{
    FSDP_TRY(request->algorithm->advance(request, progress));
    if (*progress != FSDPI_FINISHED) {
        return FSDP_OK;
    }
    if (request->algorithm->agrees_at_end) {
        agree_at_end(request);
        *progress = FSDPI_MOVED;
    } else if (request->algorithm->leaves_together && request->engine->nodes->size > 1) {
        leave(request);
        *progress = FSDPI_MOVED;
    } else if (request->algorithm->end != NULL) {
        request->algorithm->end(request);
    }
    return FSDP_OK;
}

/* A step has been done, and the next one is short: takes it at once, rather than after all that is done between two. */
static inline fsdp_status go_on(fsdp_request *request, fsdpi_progress *progress,
                                fsdp_status (*next)(fsdp_request *request, fsdpi_progress *progress))
{
    FSDP_TRY(next(request, progress));
    *progress = *progress == FSDPI_WAITING ? FSDPI_MOVED : *progress;
    return FSDP_OK;
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
        return FSDP_OK;
    }
    record_if_not_yet(request->queue, request);
    if (!request->algorithm->is_rider) { /* whose data has come already: the recorder is told at its end */
        fsdpi_recorder_move(request->engine->recorder, request->sequence, request->algorithm->name,
                            !request->algorithm->is_short);
    }
    if (!request->algorithm->is_short) {
        fsdpi_change_lanes(request);
        return FSDP_OK;
    }
    atomic_store_explicit(&request->state, FSDPI_REQUEST_MOVING, memory_order_relaxed);
    return go_on(request, progress, moving);
}

static fsdp_status leaving(fsdp_request *request, fsdpi_progress *progress)
{
    fsdpi_mailbox *box = &request->lane->box;

    *progress = FSDPI_WAITING;
    if (fsdpi_milestone_reached(box, FSDPI_MILESTONE(box->number, FSDPI_LEFT))) {
        *progress = FSDPI_FINISHED;
        if (request->algorithm->end != NULL) {
            request->algorithm->end(request);
        }
    }
    return FSDP_OK;
}

static bool may_start(const fsdp_request *request)
{
    return !request->call.is_behind || fsdpi_head(request->queue, FSDPI_LANE_LONG) == NULL;
}

static fsdp_status step(fsdp_request *request, fsdpi_progress *progress)
{
    switch (atomic_load_explicit(&request->state, memory_order_relaxed)) {
    case FSDPI_REQUEST_QUEUED:
        if (!may_start(request)) {
            *progress = FSDPI_WAITING;
            return FSDP_OK;
        }
        start(request);
        return go_on(request, progress, agreeing);
    case FSDPI_REQUEST_AGREED:
        fsdpi_meet_in_lane(request);
        *progress = FSDPI_MOVED;
        return FSDP_OK;
    case FSDPI_REQUEST_MEETING:
        *progress = fsdpi_have_met_in_lane(request) ? FSDPI_MOVED : FSDPI_WAITING;
        return FSDP_OK;
    case FSDPI_REQUEST_EXCHANGING_DETAILS:
        return fsdpi_details_advance(request, progress);
    case FSDPI_REQUEST_MOVING:
        return moving(request, progress);
    case FSDPI_REQUEST_LEAVING:
        return leaving(request, progress);
    case FSDPI_REQUEST_DOUBTED:
        *progress = fsdpi_inquest_lets_end(request->queue, request) ? FSDPI_FINISHED : FSDPI_WAITING;
        return FSDP_OK;
    default:
        return agreeing(request, progress);
    }
}

/* Of an operation that its issuer carries out at once: peers wait to be told of it, the recorder can wait until they are. */
static void record_late(fsdpi_queue *queue, fsdp_request *request, fsdpi_progress progress)
{
    const int state = atomic_load_explicit(&request->state, memory_order_relaxed);

    if (progress == FSDPI_WAITING || state != FSDPI_REQUEST_ARRIVING) {
        fsdpi_queue_record(queue, request, state != FSDPI_REQUEST_QUEUED);
    }
}

enum { MOVES_BETWEEN_SIGNS = 64 };

/* Only one thread at a time carries operations out; others read it. */
static void count_moves(fsdpi_queue *queue, uint64_t n)
{
    const uint64_t moves = atomic_load_explicit(&queue->moves, memory_order_relaxed);

    atomic_store_explicit(&queue->moves, moves + n, memory_order_relaxed);
    queue->helping.naps_in_vain = 0;
    if (moves / MOVES_BETWEEN_SIGNS != (moves + n) / MOVES_BETWEEN_SIGNS) {
        fsdpi_inquest_give_sign(queue, true);
    }
}

/*
 * Between nodes, an operation that rode on its agreement needs no second look at the inquest: the agreement has just had one, unless
 * what is sent took longer.
 */
static bool is_settled(const fsdpi_queue *queue, const fsdp_request *request)
{
    return queue->engine.nodes->count > 1 && request->algorithm != NULL && request->algorithm->is_rider &&
           request->stage == 0;
}

/* It has come to its end here: whether it is over. */
static bool is_over(fsdpi_queue *queue, fsdp_request *request)
{
    if (is_settled(queue, request) || fsdpi_inquest_lets_end(queue, request)) {
        return true;
    }
    atomic_store_explicit(&request->state, FSDPI_REQUEST_DOUBTED, memory_order_relaxed);
    return false;
}

/* Whether its next step is short too, and can be taken at once. */
static bool goes_on(const fsdp_request *request, const fsdpi_lane *where)
{
    return request->lane == where &&
           atomic_load_explicit(&request->state, memory_order_relaxed) != FSDPI_REQUEST_AGREED;
}

/* Some steps of the operation at the head of a lane; more than one in the short lane only, where they are short. */
static bool advance_head(fsdpi_queue *queue, int lane)
{
    fsdp_request     *request  = fsdpi_head(queue, lane);
    const fsdpi_lane *where    = &queue->engine.lanes[lane];
    fsdpi_progress    progress = FSDPI_MOVED;
    fsdp_status       status   = FSDP_OK;
    uint64_t          moves    = 0;

    fsdpi_record_into(request->error);
    do {
        const fsdp_status broken = queue->engine.core->broken;
        status                   = broken != FSDP_OK ? fsdpi_record_broken(queue, broken) : step(request, &progress);
        moves += progress != FSDPI_WAITING;
        if (!request->is_recorded) {
            record_late(queue, request, progress);
        }
    } while (progress == FSDPI_MOVED && status == FSDP_OK && lane == FSDPI_LANE_SHORT && goes_on(request, where));
    fsdpi_record_into(NULL);
    if (moves > 0) {
        count_moves(queue, moves);
    }
    if (status == FSDP_ERR_MPI) {
        fsdpi_dump_fail(request->error);
    }
    if (status != FSDP_OK || (progress == FSDPI_FINISHED && is_over(queue, request))) {
        complete_head(queue, lane, status);
        return true;
    }
    return moves > 0;
}

/* The steps of a brief operation, one right after the other: what is left of it after these goes on as any other. */
static fsdp_status brief_steps(fsdp_request *request, fsdpi_progress *progress)
{
    bool agreed = false;

    FSDP_TRY(fsdpi_agreement_brief(request, &agreed));
    if (!agreed) {
        return FSDP_OK;
    }
    request->algorithm = request->call.collective->choose(request);
    atomic_store_explicit(&request->state, FSDPI_REQUEST_MOVING, memory_order_relaxed);
    return moving(request, progress);
}

void fsdpi_carry_out_briefly(fsdpi_queue *queue, fsdp_request *request)
{
    enum { STEPS = 3 };
    fsdpi_progress progress = FSDPI_MOVED;

    request->begun           = fsdpi_trace_now(request->engine->trace);
    const fsdp_status status = brief_steps(request, &progress);
    count_moves(queue, STEPS);
    if (status != FSDP_OK) { /* recorded in the context, by the thread that will be told of it */
        (void)snprintf(request->error, sizeof request->error, "%s", fsdpi_error_recorded(request->ctx));
    }
    if (status == FSDP_ERR_MPI) {
        fsdpi_dump_fail(request->error);
    }
    if (status != FSDP_OK) {
        complete_head(queue, FSDPI_LANE_SHORT, status);
    } else if (progress == FSDPI_FINISHED) {
        complete_head_since(queue, FSDPI_LANE_SHORT, FSDP_OK, queue->inquest.ended); /* moments ago */
    }
}

/* There is other work than to look at a word again and again. */
static void hurry(fsdpi_queue *queue, bool hurried)
{
    for (int lane = 0; lane < FSDPI_LANES; lane++) {
        queue->engine.lanes[lane].box.hurried = hurried;
    }
}

/* All operations of the short lane, as far as they get. */
static bool advance_short(fsdpi_queue *queue)
{
    bool moved = false;

    for (fsdp_request *head = fsdpi_head(queue, FSDPI_LANE_SHORT), *before = NULL; head != NULL && head != before;) {
        moved  = advance_head(queue, FSDPI_LANE_SHORT) || moved;
        before = head;
        head   = fsdpi_head(queue, FSDPI_LANE_SHORT);
    }
    return moved;
}

/*
 * After a step in the short lane the peers' next letters may come within microseconds, and a step in the long lane takes many:
 * ranks that have several operations to agree on stay with these for a moment, so that they do not wait for each other's long
 * steps every time.
 */
static void stay_in_short(fsdpi_queue *queue)
{
    static const double MOMENT = 20e-6;
    double              since  = fsdpi_seconds();

    while (fsdpi_head(queue, FSDPI_LANE_SHORT) != NULL && fsdpi_seconds() - since < MOMENT) {
        if (advance_short(queue)) {
            since = fsdpi_seconds();
        }
    }
}

/*
 * Whether the next step in the long lane is left to the thread, since what this one waits for is over. Not twice in a row: one short
 * operation right after another would keep the thread from its turn.
 */
static bool leaves_long_step(fsdpi_queue *queue, const fsdp_request *last)
{
    const bool leaves = queue->has_thread && last != NULL && fsdpi_is_done(last) && !queue->has_left_long_step;

    queue->has_left_long_step = leaves;
    return leaves;
}

bool fsdpi_look(fsdpi_queue *queue, const fsdp_request *last)
{
    bool moved;

    hurry(queue, fsdpi_waits_twice(queue));
    moved = advance_short(queue);
    if (moved && queue->share >= 1.0 && fsdpi_waits_twice(queue)) {
        stay_in_short(queue);
    }
    if (fsdpi_head(queue, FSDPI_LANE_LONG) != NULL && !leaves_long_step(queue, last)) {
        moved = advance_head(queue, FSDPI_LANE_LONG) || moved;
    }
    return moved;
}

void fsdpi_give_up(fsdpi_queue *queue, bool printed)
{
    char text[FSDPI_ERROR_BYTES];

    fsdpi_inquest_describe_end(queue, text, sizeof text);
    queue->engine.core->broken = FSDP_ERR_TIMEOUT;
    fsdp_request *oldest       = fsdpi_oldest(queue);
    fsdpi_record_into(oldest->error);
    if (printed) {
        (void)fsdpi_record(queue->engine.core->ctx, FSDP_ERR_TIMEOUT, "%s", text);
    } else {
        (void)fsdpi_fail(queue->engine.core->ctx, FSDP_ERR_TIMEOUT, "%s", text);
    }
    fsdpi_record_into(NULL);
    memcpy(text, oldest->error, sizeof text);
    fsdpi_dump_give_up(text);
    for (int lane = FSDPI_LANE_LONG; lane >= FSDPI_LANE_SHORT; lane--) {
        for (fsdp_request *head = fsdpi_head(queue, lane); head != NULL; head = fsdpi_head(queue, lane)) {
            memcpy(head->error, text, sizeof head->error);
            complete_head(queue, lane, FSDP_ERR_TIMEOUT);
        }
    }
}

bool fsdpi_take_over(fsdpi_queue *queue, bool is_progress_thread)
{
    fsdpi_queue_lock(queue);
    const bool taken = !queue->running && fsdpi_oldest(queue) != NULL;
    if (taken) {
        queue->running = true;
    }
    queue->passed_over = queue->passed_over || (is_progress_thread && queue->running && !taken);
    fsdpi_queue_unlock(queue);
    return taken;
}

void fsdpi_hand_back(fsdpi_queue *queue)
{
    fsdpi_queue_lock(queue);
    queue->running    = false;
    const bool passed = fsdpi_was_passed_over(queue);
    fsdpi_queue_unlock(queue);
    if (passed) {
        fsdpi_ring(queue);
    }
}

bool fsdpi_advance(fsdpi_queue *queue, const fsdp_request *last, bool gives_way)
{
    while (fsdpi_look(queue, last)) {
        if (last != NULL && fsdpi_is_done(last)) {
            return true;
        }
        if (gives_way && atomic_load_explicit(&queue->waiters, memory_order_relaxed) > 0) {
            return false;
        }
    }
    return fsdpi_oldest(queue) == NULL;
}
