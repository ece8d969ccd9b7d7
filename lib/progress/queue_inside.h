/**
 * @file
 * What the files of the queue share. Its face is lib/progress/queue.h; only these files include this one:
 *
 *   queue.c         operations issued, waited for and tested; opening and closing
 *   request_pool.c  where requests come from and return to
 *   carry_out.c     the operations at the heads of the lanes: their states, their end, and which thread carries them out
 *   inquest.c       who is missing, when nothing has moved for long, and how all come to know that it has been given up
 *   inquest_words.c that in words
 *   waiting.c       how long to wait, how to pause between two looks, and the time-out
 *   thread.c        the progress thread
 */
#ifndef FSDPI_QUEUE_INSIDE_H
#define FSDPI_QUEUE_INSIDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/lock.h"
#include "lib/progress/queue_state.h"

/* ---- the queue itself -------------------------------------------------------------------------------------------- */

static inline int fsdpi_state_of(const fsdp_request *request)
{
    return atomic_load_explicit(&request->state, memory_order_acquire);
}

static inline bool fsdpi_is_done(const fsdp_request *request)
{
    return fsdpi_state_of(request) == FSDPI_REQUEST_DONE;
}

static inline void fsdpi_queue_lock(fsdpi_queue *queue)
{
    fsdpi_lock_take(&queue->lock);
}

static inline void fsdpi_queue_unlock(fsdpi_queue *queue)
{
    fsdpi_lock_give(&queue->lock);
}

/** The operation at the head of a lane; NULL: there is none. */
static inline fsdp_request *fsdpi_head(const fsdpi_queue *queue, int lane)
{
    return atomic_load_explicit(&queue->lines[lane].head, memory_order_acquire);
}

/** The one that was issued first of those that are not done; NULL: there is none. */
static inline fsdp_request *fsdpi_oldest(const fsdpi_queue *queue)
{
    fsdp_request *moving = fsdpi_head(queue, FSDPI_LANE_LONG);

    return moving != NULL ? moving : fsdpi_head(queue, FSDPI_LANE_SHORT);
}

static inline bool fsdpi_queue_is_empty(fsdpi_queue *queue)
{
    fsdpi_queue_lock(queue); /* one that changes lanes is in neither for a moment */
    const bool empty = fsdpi_oldest(queue) == NULL;
    fsdpi_queue_unlock(queue);
    return empty;
}

/** Puts a request behind the others of a lane, and takes the first one out. Under the lock. */
void          fsdpi_line_append(fsdpi_line *line, fsdp_request *request);
fsdp_request *fsdpi_line_remove(fsdpi_line *line);

/** Likewise: takes out what is done at the head of a lane. */
void fsdpi_line_end(fsdpi_queue *queue, int lane);

/** Writes it into the flight recorder. `begun`: ranks agree on it already. */
void fsdpi_queue_record(fsdpi_queue *queue, fsdp_request *request, bool begun);

/* ---- request_pool.c: under the lock ------------------------------------------------------------------------------ */

/** BYTES of bookkeeping of the first requests. */
size_t fsdpi_requests_bookkeeping(void);

fsdp_status fsdpi_requests_make(fsdpi_queue *queue);
void        fsdpi_requests_release(fsdpi_queue *queue);

/** `reserved`: one of those, if there are any left. NULL: there is no memory. */
fsdp_request *fsdpi_request_take(fsdpi_queue *queue, bool reserved);
void          fsdpi_request_put(fsdpi_queue *queue, fsdp_request *request);

/* ---- carry_out.c: by one thread at a time, which holds `running` instead of the lock ------------------------------- */

/** Becomes the thread that carries operations out, if there are any and nobody else does. */
bool fsdpi_take_over(fsdpi_queue *queue, bool is_progress_thread);
void fsdpi_hand_back(fsdpi_queue *queue);

/** Under the lock, by who hands back: whether the progress thread has found it running, and has to be rung for. */
static inline bool fsdpi_was_passed_over(fsdpi_queue *queue)
{
    const bool passed = queue->passed_over && fsdpi_oldest(queue) != NULL;

    queue->passed_over = false;
    return passed;
}

/**
 * One look at both lanes: the short one as far as it gets without waiting, then one step of the operation at the head of the
 * long one, which is left to the thread, if there is one, where `last` is over by then. `last` may be NULL. True where anything has
 * moved.
 */
bool fsdpi_look(fsdpi_queue *queue, const fsdp_request *last);

/**
 * Carries out what can be, up to the end of `last` or, if that is NULL, of all; or, with `gives_way`, until another thread waits.
 * False where an operation is left.
 */
bool fsdpi_advance(fsdpi_queue *queue, const fsdp_request *last, bool gives_way);

/**
 * Everything queued ends with FSDP_ERR_TIMEOUT: what has been begun can be neither completed nor taken back.
 * `printed`: another rank of the node has printed who is missing.
 */
void fsdpi_give_up(fsdpi_queue *queue, bool printed);

/**
 * The first steps of one that fsdpi_agreement_is_brief() names, by its issuer, with nothing else in either lane; mostly all of them.
 */
void fsdpi_carry_out_briefly(fsdpi_queue *queue, fsdp_request *request);

/** Says that the context is broken; returns why. */
fsdp_status fsdpi_record_broken(fsdpi_queue *queue, fsdp_status broken);

/* ---- waiting.c ----------------------------------------------------------------------------------------------------- */

/** From now on. */
fsdpi_patience fsdpi_begin_to_wait(const fsdpi_queue *queue);

/** After each look. True where something has moved since the last one, so that the next is worth while at once. */
bool fsdpi_have_moved(const fsdpi_queue *queue, fsdpi_patience *patience);

/** Whether nothing has moved for FSDP_TIMEOUT_S. */
bool fsdpi_is_over(const fsdpi_queue *queue, const fsdpi_patience *patience);

bool fsdpi_messages_are_under_way(const fsdpi_queue *queue);

/**
 * Sleeps until what the last look found wanting on this node changes, at most so many SECONDS. False: there is nothing such. Both
 * lanes may wait: then it is the short one, and `fsdpi_waits_twice()` says that the other is to be looked at soon.
 */
bool fsdpi_sleep(fsdpi_queue *queue, double seconds);
bool fsdpi_waits_twice(const fsdpi_queue *queue);

/**
 * For who naps, but not for a message: peers may need MPI to go on here before they come, with a message of the caller's own
 * for instance. An MPI that finds nothing to do may give its core away (mpi_yield_when_idle), and those who compute there keep
 * it for a whole slice: where that happens, MPI is called after some naps only.
 * @return true: MPI was at work not long ago, so that the next look is worth while without a nap
 */
bool fsdpi_help_peers(fsdpi_queue *queue);

/** Until a request is done. `running`: the calling thread already carries out the head. */
void fsdpi_wait_for(fsdp_request *request, bool running);

/* ---- thread.c ------------------------------------------------------------------------------------------------------ */

/** There may be something to do for the progress thread. */
void fsdpi_ring(fsdpi_queue *queue);

/** Ends a nap of the progress thread between two looks, wherever it takes it: someone waits now. */
void fsdpi_rouse(fsdpi_queue *queue);

void fsdpi_stop_thread(fsdpi_queue *queue);

#endif
