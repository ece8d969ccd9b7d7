/*
 * The progress thread of a context: carries out operations while no other thread waits for one.
 */
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
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
        fsdpi_mailbox_rouse(queue->engine.box);
    }
}

/* The progress thread's: on the word that it waits for, unless it waits for a message. fsdpi_rouse() ends it. */
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

    const bool messages = fsdpi_messages_are_under_way(queue);
    if (messages && patience->waited < GIVING_WAY_SECONDS) {
        (void)sched_yield();
        return;
    }
    if (!messages) {
        fsdpi_help_peers(queue);
    }
    const double nap = messages ? patience->waited / 8 : FIRST * (double)patience->looks;
    nap_until_roused(queue, messages, nap < FIRST ? FIRST : nap < LAST ? nap : LAST);
}

static void work(fsdpi_queue *queue)
{
    fsdpi_patience patience = fsdpi_begin_to_wait(queue);

    while (atomic_load(&queue->waiters) == 0 && !fsdpi_queue_is_empty(queue)) {
        (void)fsdpi_advance(queue, NULL);
        if (fsdpi_have_moved(queue, &patience)) {
            continue;
        }
        if (!fsdpi_inquest_look(queue, &patience)) {
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
        if (atomic_load(&queue->waiters) == 0 && fsdpi_take_over(queue, true)) {
            atomic_store(&queue->sleeping, 0);
            work(queue);
            fsdpi_hand_back(queue);
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

void fsdpi_stop_thread(fsdpi_queue *queue)
{
    if (!queue->has_thread) {
        return;
    }
    atomic_store(&queue->stop, true);
    fsdpi_ring(queue);
    (void)pthread_join(queue->thread, NULL);
    queue->has_thread = false;
}
