/*
 * The progress thread of a context: carries out operations while no other thread waits for one.
 */
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/mpi_yields.h"
#include "lib/progress/inquest.h"
#include "lib/progress/queue.h"
#include "lib/progress/queue_inside.h"

void fsdpi_ring(fsdpi_queue *queue)
{
    (void)atomic_fetch_add(&queue->bell, 1);
    if (atomic_load(&queue->sleeping) != 0) {
        (void)syscall(SYS_futex, &queue->bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

void fsdpi_rouse(fsdpi_queue *queue)
{
    if (atomic_load(&queue->napping) != 0) {
        (void)atomic_fetch_add(&queue->bell, 1);
        (void)syscall(SYS_futex, &queue->bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        for (int lane = 0; lane < FSDPI_LANES; lane++) {
            fsdpi_mailbox_rouse(&queue->engine.lanes[lane].box);
        }
    }
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
 * How long the scheduler lets this thread run at a time. With a short slice (Linux 6.12; else nothing happens) who wakes up
 * comes before those who compute with long ones, without a larger share: between nodes, beside compute on all cores, that keeps
 * the link busy. On a slow link, where others compute, the thread has it while it sleeps, too: a message that leaves early is worth
 * more than what its caller loses. Elsewhere it would come before that caller, who has rung in order to go on, perhaps only to
 * start a GPU, or to wait for something short: whose yields then cost it a long slice, 3.5 ms, each time.
 */
static void ask_for_short_slices(fsdpi_queue *queue, bool wanted)
{
    enum { SLICE_NANOSECONDS = 100000, KEEP_POLICY = 0x08 };

    if (queue->has_short_slices != wanted) {
        const scheduling wish = {.size    = sizeof wish,
                                 .flags   = KEEP_POLICY,
                                 .nice    = getpriority(PRIO_PROCESS, 0), /* of this thread */
                                 .runtime = wanted ? SLICE_NANOSECONDS : 0};

        (void)syscall(SYS_sched_setattr, 0, &wish, 0);
        queue->has_short_slices = wanted;
    }
}

/* Whether others compute where this thread works for a slow link. */
static bool holds_its_core(const fsdpi_queue *queue)
{
    return queue->link_is_slow && fsdpi_is_crowded(&queue->giving_way);
}

/* The progress thread's: on the word that it waits for, unless it waits for something else too. fsdpi_rouse() ends it. */
static void nap_until_roused(fsdpi_queue *queue, bool unroused, double seconds)
{
    static const double   LONGEST = 1e-3; /* where a peer ends it too */
    const struct timespec most    = {.tv_nsec = (long)(seconds * 1e9)};

    atomic_store(&queue->napping, 1);
    const uint32_t bell = atomic_load(&queue->bell);
    if (atomic_load(&queue->waiters) == 0 && !atomic_load(&queue->stop) && (unroused || !fsdpi_sleep(queue, LONGEST))) {
        (void)syscall(SYS_futex, &queue->bell, FUTEX_WAIT_PRIVATE, bell, &most, NULL, 0);
    }
    atomic_store(&queue->napping, 0);
}

/*
 * Between two looks of the progress thread that found nothing to do. It never spins: the core belongs to whoever computes,
 * unless it has one for itself.
 * While messages are under way the next piece is due at any moment, and a nap may let the link run dry, so that for a while the
 * thread only gives way, unless that takes longer than a nap; what takes longer than that while is not hurried by looking.
 * Whoever begins to wait ends the nap.
 * A look that took LONG, though nothing came to its end, has moved bytes: UCX brings 512 KiB of a long message in each, in 17 us or
 * more, and the rest waits for the next look, not for a peer. Or others had the core, and one more look costs little. Over a slow link
 * bytes come by themselves.
 */
static void pause_between_looks(fsdpi_queue *queue, const fsdpi_patience *patience, double took)
{
    static const double GIVING_WAY_SECONDS = 1e-3, LONG = 10e-6, LATE = 200e-6, FIRST = 50e-6, LAST = 1e-3;

    const bool messages = fsdpi_messages_are_under_way(queue);
    if ((!messages && fsdpi_help_peers(queue)) || queue->own_core.has) {
        (void)sched_yield();
        return;
    }
    const bool soon = messages && patience->waited < queue->share * GIVING_WAY_SECONDS;
    if (soon && took > LONG && !queue->link_is_slow) {
        return;
    }
    if (soon && fsdpi_may_give_way(&queue->giving_way)) {
        (void)sched_yield();
        fsdpi_gave_way(&queue->giving_way, fsdpi_seconds() - patience->looked > LATE);
        return;
    }
    const double nap   = messages ? patience->waited / 4 : FIRST * (double)patience->looks;
    const double least = messages ? queue->nap : FIRST;
    nap_until_roused(queue, messages || fsdpi_waits_twice(queue), nap < least ? least : nap < LAST ? nap : LAST);
}

static void check_core(fsdpi_queue *queue, double now)
{
    if (fsdpi_own_core_is_lost(&queue->own_core, now)) {
        fsdpi_log(queue->engine.core->ctx, FSDP_LOG_INFO,
                  "others compute on the core that the progress thread had for itself: it runs where the rank "
                  "computes, and naps");
    }
}

/* MPI does not yield meanwhile: it would be milliseconds late, and the thread pauses by itself. Returns when it began. */
static double look(fsdpi_queue *queue)
{
    const double now = fsdpi_seconds();

    fsdpi_mpi_suspend_yields();
    (void)fsdpi_advance(queue, NULL, true);
    fsdpi_mpi_resume_yields();
    return now;
}

/*
 * After a look that moved something over a slow link. Beside compute a look costs the same, cold caches and all, however much
 * has come: the next one waits until it finds a few pieces. A new operation does not end this nap, so that there is none after
 * the last message.
 */
static void let_others_compute(fsdpi_queue *queue)
{
    const bool wanted = !queue->own_core.has && fsdpi_is_crowded(&queue->giving_way);

    if (wanted && queue->link_is_slow && fsdpi_messages_are_under_way(queue)) {
        nap_until_roused(queue, true, 2 * queue->nap);
    }
}

static void work(fsdpi_queue *queue)
{
    fsdpi_patience patience = fsdpi_begin_to_wait(queue);

    fsdpi_own_core_begin(&queue->own_core, patience.looked);
    while (atomic_load(&queue->waiters) == 0 && !fsdpi_queue_is_empty(queue)) {
        const double began = look(queue);
        const bool   moved = fsdpi_have_moved(queue, &patience);
        check_core(queue, patience.looked);
        if (moved) {
            let_others_compute(queue);
        } else if (!fsdpi_inquest_look(queue, &patience)) {
            pause_between_looks(queue, &patience, patience.looked - began);
        }
    }
    fsdpi_own_core_end(&queue->own_core, patience.looked);
    atomic_store(&queue->thread_nanoseconds, fsdpi_thread_nanoseconds());
}

void fsdpi_queue_watch(fsdpi_queue *queue)
{
    if (atomic_exchange(&queue->watched, fsdpi_seconds()) == 0 && queue->has_thread) {
        fsdpi_ring(queue);
    }
}

void fsdpi_queue_unwatch(fsdpi_queue *queue)
{
    atomic_store(&queue->watched, 0);
}

/*
 * With messages to watch, for a while. A receiver that computes would not answer a sender that asks whether it may send, and who
 * sends by TCP has to fill the system's buffers again and again.
 */
static void sleep_until_rung(fsdpi_queue *queue, uint32_t bell)
{
    static const double SHORTEST = 50e-6, LONGEST = 500e-6;

    const double watched = atomic_load(&queue->watched);
    if (watched == 0) {
        ask_for_short_slices(queue, holds_its_core(queue));
        (void)syscall(SYS_futex, &queue->bell, FUTEX_WAIT_PRIVATE, bell, NULL, NULL, 0);
        return;
    }
    ask_for_short_slices(queue, true);
    fsdpi_mpi_suspend_yields();
    fsdpi_messages_progress(&queue->engine.lanes[FSDPI_LANE_SHORT].messages);
    fsdpi_mpi_resume_yields();
    atomic_store(&queue->thread_nanoseconds, fsdpi_thread_nanoseconds());
    const double          wanted = (fsdpi_seconds() - watched) / 8;
    const double          nap    = wanted < SHORTEST ? SHORTEST : wanted < LONGEST ? wanted : LONGEST;
    const struct timespec most   = {.tv_nsec = (long)(nap * 1e9)};
    (void)syscall(SYS_futex, &queue->bell, FUTEX_WAIT_PRIVATE, bell, &most, NULL, 0);
}

/* The caller has this core first if it wants it, except beside compute on a slow link. */
static void let_caller_go_on(fsdpi_queue *queue)
{
    ask_for_short_slices(queue, queue->engine.nodes->count > 1);
    if (!holds_its_core(queue)) {
        (void)sched_yield();
    }
}

/* Works only while no other thread waits for the queue. */
static void *progress_thread(void *context)
{
    fsdpi_queue *queue = context;

    (void)pthread_setname_np(pthread_self(), "fsdp-progress");
    (void)prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
    fsdpi_recorder_thread(queue->engine.recorder, FSDPI_THREAD_ASLEEP);
    while (!atomic_load(&queue->stop)) {
        atomic_store(&queue->sleeping, 1);
        const uint32_t bell = atomic_load(&queue->bell);
        if (atomic_load(&queue->waiters) == 0 && fsdpi_take_over(queue, true)) {
            atomic_store(&queue->sleeping, 0);
            fsdpi_recorder_thread(queue->engine.recorder, FSDPI_THREAD_AT_WORK);
            let_caller_go_on(queue);
            work(queue);
            fsdpi_recorder_thread(queue->engine.recorder, FSDPI_THREAD_ASLEEP);
            fsdpi_hand_back(queue);
        } else if (!atomic_load(&queue->stop)) {
            sleep_until_rung(queue, bell);
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
    fsdpi_own_core_take(&queue->own_core, binding, queue->engine.core->config.progress_cpu >= 0, queue->thread);
    queue->has_thread = true;
    return FSDP_OK;
}

void fsdpi_stop_thread(fsdpi_queue *queue)
{
    if (!queue->has_thread) {
        return;
    }
    atomic_store(&queue->stop, true);
    fsdpi_ring(queue);
    (void)pthread_join(queue->thread, NULL);
    queue->has_thread = false;
    fsdpi_recorder_thread(queue->engine.recorder, FSDPI_THREAD_NONE);
}
