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
        patience->moves  = moves;
        patience->waited = 0;
        patience->looks  = 0;
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
    return queue->engine.messages->n > 0 || queue->engine.rails->n_messages > 0;
}

void fsdpi_help_peers(fsdpi_queue *queue)
{
    enum { NAPS_BEFORE = 8 };

    if (queue->naps_in_vain < NAPS_BEFORE) {
        queue->naps_in_vain++;
    } else {
        fsdpi_messages_progress(queue->engine.messages);
    }
}

/*
 * Nothing wakes who waits for a message, so it is polled for longer: a nap makes a short message late. `others`: other
 * contexts of this process wait too, which nothing wakes either.
 */
static void pause_between_polls(fsdpi_queue *queue, const fsdpi_patience *patience, bool others)
{
    static const double NAP = 100e-6, LONG_NAP = 1e-3, MESSAGE_YIELDING_SECONDS = 2e-3;

    const bool   messages = fsdpi_messages_are_under_way(queue);
    const double yielding = messages ? MESSAGE_YIELDING_SECONDS : FSDPI_YIELDING_SECONDS;
    if (fsdpi_back_off(patience->looks, patience->waited, yielding)) {
        return;
    }
    if (!messages) {
        fsdpi_help_peers(queue);
    }
    const bool   unroused = messages || others;
    const double nap      = unroused || patience->waited < 20e-3 ? NAP : LONG_NAP;
    if (!fsdpi_mailbox_sleep(queue->engine.box, unroused ? nap : LONG_NAP)) {
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

/* Of who carries out the head, and has found that it waits. */
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
        (void)fsdpi_advance(queue, request);
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
        !fsdpi_back_off(patience->looks, patience->waited, FSDPI_YIELDING_SECONDS)) {
        fsdpi_nap(50e-6);
    }
}

/* Time is only taken once the first look has not been enough: the shortest operations cost less than asking for it. */
void fsdpi_wait_for(fsdp_request *request, bool running)
{
    fsdpi_queue   *queue    = request->queue;
    fsdpi_patience patience = fsdpi_begin_to_wait(queue);
    const double   begin    = patience.looked;

    (void)atomic_fetch_add(&queue->waiters, 1);
    while (!fsdpi_is_done(request)) {
        wait_once(request, running, &patience);
    }
    fsdpi_queue_lock(queue);
    queue->wait_seconds += fsdpi_seconds() - begin;
    fsdpi_queue_unlock(queue);
    if (atomic_fetch_sub(&queue->waiters, 1) == 1 && queue->has_thread && !fsdpi_queue_is_empty(queue)) {
        fsdpi_ring(queue);
    }
}
