/*
 * How a thread waits for an operation: it looks, carries out what it can, and pauses; and how long that may take in all.
 */
#include "lib/base/clock.h"
#include "lib/progress/inquest.h"
#include "lib/progress/queue_inside.h"

/*
 * A process that was stopped has not waited all that time: its peers could have come, and it could not look. Time between
 * two looks counts up to this many seconds.
 */
static const double MOST_SECONDS_BETWEEN_LOOKS = 1.0;

fsdpi_patience fsdpi_begin_to_wait(const fsdpi_queue *queue)
{
    return (fsdpi_patience){.moves  = atomic_load_explicit(&queue->moves, memory_order_relaxed),
                            .looked = fsdpi_seconds()};
}

bool fsdpi_have_moved(const fsdpi_queue *queue, fsdpi_patience *patience)
{
    const uint64_t moves = atomic_load_explicit(&queue->moves, memory_order_relaxed);
    const double   now = fsdpi_seconds(), since = now - patience->looked;

    patience->looked = now;
    if (moves != patience->moves) {
        patience->moves    = moves;
        patience->waited   = 0;
        patience->looks    = 0;
        patience->warnings = 0;
        return true;
    }
    patience->waited += since < MOST_SECONDS_BETWEEN_LOOKS ? since : MOST_SECONDS_BETWEEN_LOOKS;
    patience->looks++;
    return false;
}

bool fsdpi_is_over(const fsdpi_queue *queue, const fsdpi_patience *patience)
{
    const int most = queue->engine.core->config.timeout_s;

    return most > 0 && patience->waited > most;
}

bool fsdpi_messages_are_under_way(const fsdpi_queue *queue)
{
    const fsdpi_lane *lanes = queue->engine.lanes;

    return lanes[FSDPI_LANE_SHORT].messages.n > 0 || lanes[FSDPI_LANE_LONG].messages.n > 0 ||
           queue->engine.rails->n_messages > 0;
}

bool fsdpi_waits_twice(const fsdpi_queue *queue)
{
    return fsdpi_head(queue, FSDPI_LANE_SHORT) != NULL && fsdpi_head(queue, FSDPI_LANE_LONG) != NULL;
}

/* An operation that is behind others waits for this rank's own long lane. */
bool fsdpi_sleep(fsdpi_queue *queue, double seconds)
{
    const fsdp_request *first = fsdpi_head(queue, FSDPI_LANE_SHORT);
    const bool          is_short =
        first != NULL && atomic_load_explicit(&first->state, memory_order_relaxed) != FSDPI_REQUEST_QUEUED;

    return fsdpi_mailbox_sleep(&queue->engine.lanes[is_short ? FSDPI_LANE_SHORT : FSDPI_LANE_LONG].box, seconds);
}

/* Calls MPI, and learns from what that takes. MPI says nothing of what it has done, but to move data takes time of a core. */
static void call_mpi(const fsdpi_messages *messages, fsdpi_helping *helping)
{
    enum { LOOKS_AFTER_WORK = 32, NAPS_BEFORE = 8 };
    static const uint64_t WORK_NANOSECONDS = 2000;
    static const double   SLICE_SECONDS    = 200e-6; /* less than one, and more than MPI takes for nothing */

    const double   begin  = fsdpi_seconds();
    const uint64_t before = fsdpi_thread_nanoseconds();
    fsdpi_messages_progress(messages);
    const uint64_t used = fsdpi_thread_nanoseconds() - before;
    const double   away = fsdpi_seconds() - begin - 1e-9 * (double)used;
    const bool     work = helping->least > 0 && used > 2 * helping->least + WORK_NANOSECONDS;

    helping->least       = helping->least == 0 || used < helping->least ? used : helping->least;
    helping->looks_left  = work ? LOOKS_AFTER_WORK : helping->looks_left;
    helping->naps_before = away > SLICE_SECONDS ? NAPS_BEFORE : 0;
    if (!work && away > SLICE_SECONDS) {
        helping->looks_left   = 0;
        helping->naps_in_vain = 0;
    }
}

bool fsdpi_help_peers(fsdpi_queue *queue)
{
    fsdpi_helping *helping = &queue->helping;

    if (helping->looks_left > 0) {
        helping->looks_left--;
    } else if (helping->naps_in_vain < helping->naps_before) {
        helping->naps_in_vain++;
        return false;
    }
    call_mpi(&queue->engine.lanes[FSDPI_LANE_SHORT].messages, helping);
    return helping->looks_left > 0;
}

/*
 * Nothing wakes who waits for a message, so it is polled for longer: a nap makes a short message late. `others`: other
 * contexts of this process wait too, which nothing wakes either. Where ranks take turns on the cores, what one of them spends
 * on looking is another's, so that each looks for less long and less often; there everybody comes back late. A rank with a core of
 * its own does not give it away at first, which would take as long as a short message does. If others turn out to compute there, it
 * sleeps instead.
 */
static void pause_between_polls(fsdpi_queue *queue, const fsdpi_patience *patience, bool others)
{
    static const double NAP = 100e-6, LONG_NAP = 1e-3, LATE = 1e-3;
    static const double MESSAGE_SPINNING_SECONDS = 20e-6, MESSAGE_YIELDING_SECONDS = 2e-3;

    const bool   messages = fsdpi_messages_are_under_way(queue);
    const double yielding = messages ? MESSAGE_YIELDING_SECONDS : FSDPI_YIELDING_SECONDS;
    if (messages && queue->share >= 1.0 && patience->waited < MESSAGE_SPINNING_SECONDS) {
        return;
    }
    if (patience->looks < FSDPI_POLLS_AT_FULL_SPEED) {
        return;
    }
    if (patience->waited < queue->share * yielding &&
        (queue->share < 1.0 || fsdpi_may_give_way(&queue->giving_way_waiting))) {
        (void)sched_yield();
        fsdpi_gave_way(&queue->giving_way_waiting, fsdpi_seconds() - patience->looked > LATE);
        return;
    }
    if (!messages && fsdpi_help_peers(queue)) {
        (void)sched_yield();
        return;
    }
    const bool   unroused = messages || others || fsdpi_waits_twice(queue);
    const double often    = NAP / queue->share < LONG_NAP ? NAP / queue->share : LONG_NAP;
    const double nap      = unroused || patience->waited < 20e-3 ? often : LONG_NAP;
    if (!fsdpi_sleep(queue, unroused ? nap : LONG_NAP)) {
        fsdpi_nap(nap);
    }
}

/* What other contexts of this process have to do may be what the peers wait for before they come here. */
static fsdpi_progress help_others(fsdpi_queue *queue, fsdpi_patience *patience)
{
    const fsdpi_progress others = fsdpi_side_work_advance(&queue->side_work);

    if (others == FSDPI_MOVED) {
        patience->waited = 0;
        patience->looks  = 0;
    }
    return others;
}

/* Of who carries operations out, and has found that they wait. */
static void pause_or_give_up(fsdpi_queue *queue, fsdpi_patience *patience)
{
    const fsdpi_progress others = help_others(queue, patience);

    if (!fsdpi_inquest_look(queue, patience) && others != FSDPI_MOVED) {
        pause_between_polls(queue, patience, others == FSDPI_WAITING);
    }
}

/* One look: carries out what can be, and gives up when the time is over. */
static void wait_once(fsdp_request *request, bool running, fsdpi_patience *patience)
{
    fsdpi_queue *queue = request->queue;

    if (running || fsdpi_take_over(queue, false)) {
        (void)fsdpi_advance(queue, request, false);
        if (!fsdpi_have_moved(queue, patience) && !fsdpi_is_done(request)) {
            pause_or_give_up(queue, patience);
        }
        if (!running) {
            fsdpi_hand_back(queue);
        }
        return;
    }
    (void)fsdpi_have_moved(queue, patience);
    fsdpi_rouse(queue);
    if (help_others(queue, patience) != FSDPI_MOVED &&
        !fsdpi_back_off(patience->looks, patience->waited, queue->share * FSDPI_YIELDING_SECONDS)) {
        fsdpi_nap(50e-6);
    }
}

/* Whether a rank looks at full speed at first: it has a core of its own, and short messages between nodes come soon. */
static bool looks_hard(const fsdpi_queue *queue)
{
    return queue->engine.nodes->count > 1 && queue->share >= 1.0;
}

/* Some looks, which cost less than asking for the time. True when the request is done. */
static bool ends_soon(fsdp_request *request)
{
    enum { QUICK_LOOKS = 32 };

    fsdpi_queue *queue = request->queue;
    const int    looks = looks_hard(queue) ? QUICK_LOOKS : 0;

    for (int i = 0; i < looks && !fsdpi_is_done(request); i++) {
        (void)fsdpi_advance(queue, request, false);
    }
    return fsdpi_is_done(request);
}

/* To ask for a thread's CPU time takes a system call: what a wait costs is not asked for before it has taken this long. */
static const double SHORT_WAIT_SECONDS = 20e-6;

/* A wait's cost. Until `from`, before the thread first gives its core away, all of the time is the thread's. */
typedef struct wait_cost {
    double   begin, from;
    uint64_t nanoseconds; /* that the thread had used then; 0: not asked for yet */
} wait_cost;

static void begin_to_count(const fsdpi_queue *queue, const fsdpi_patience *patience, wait_cost *cost)
{
    enum { LOOKS_AT_FULL_SPEED = 12 }; /* fewer than before fsdpi_back_off() yields */

    const bool yields_soon = patience->looks >= LOOKS_AT_FULL_SPEED && !looks_hard(queue);
    if (cost->nanoseconds == 0 && (yields_soon || patience->looked - cost->begin >= SHORT_WAIT_SECONDS)) {
        cost->nanoseconds = fsdpi_thread_nanoseconds();
        cost->from        = patience->looked;
    }
}

static void count_wait(fsdpi_queue *queue, const wait_cost *cost)
{
    const double seconds = fsdpi_seconds() - cost->begin;
    double       cpu     = seconds;

    if (cost->nanoseconds > 0 && seconds >= SHORT_WAIT_SECONDS) {
        cpu = cost->from - cost->begin + 1e-9 * (double)(fsdpi_thread_nanoseconds() - cost->nanoseconds);
    }
    fsdpi_queue_lock(queue);
    queue->wait_seconds += seconds;
    queue->wait_cpu_seconds += cpu;
    fsdpi_recorder_waited(queue->engine.recorder, queue->wait_seconds);
    fsdpi_queue_unlock(queue);
}

/* Whether there are others than this one, which its issuer may still have to take out. */
static bool others_are_left(fsdpi_queue *queue, const fsdp_request *request)
{
    fsdpi_queue_lock(queue); /* one that changes lanes is in neither for a moment */
    const fsdp_request *oldest = fsdpi_oldest(queue);
    const bool          left   = oldest != NULL && (oldest != request || request->next != NULL);
    fsdpi_queue_unlock(queue);
    return left;
}

/* Time is only taken once some looks have not been enough: the shortest operations cost less than asking for it. */
void fsdpi_wait_for(fsdp_request *request, bool running)
{
    if (running && ends_soon(request)) {
        return;
    }
    fsdpi_queue   *queue    = request->queue;
    fsdpi_patience patience = fsdpi_begin_to_wait(queue);
    wait_cost      cost     = {.begin = patience.looked};

    (void)atomic_fetch_add(&queue->waiters, 1);
    while (!fsdpi_is_done(request)) {
        begin_to_count(queue, &patience, &cost);
        wait_once(request, running, &patience);
    }
    count_wait(queue, &cost);
    if (atomic_fetch_sub(&queue->waiters, 1) == 1 && queue->has_thread && others_are_left(queue, request)) {
        fsdpi_ring(queue);
    }
}
