/*
 * Work on files, at once or by a thread, which takes no signals: those are for the program's own threads.
 */
#include "shard/checkpoint/write/work.h"

#include <signal.h>
#include <sys/resource.h>

static void *run(void *argument)
{
    fsdp_checkpoint *checkpoint = argument;

    checkpoint->status = checkpoint->work(checkpoint);
    atomic_store_explicit(&checkpoint->done, true, memory_order_release);
    return NULL;
}

enum { NICE = 10 }; /* a tenth of what a thread that computes gets of a core that both want */

/* Steps come first: nobody waits for the files yet. In Linux a thread has a nice value of its own. */
static void *run_behind(void *checkpoint)
{
    (void)setpriority(PRIO_PROCESS, 0, NICE);
    return run(checkpoint);
}

/* Where there is no thread to be had, the work is done at once. */
static bool start_thread(fsdp_checkpoint *checkpoint)
{
    sigset_t all, before;

    (void)sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) {
        return false;
    }
    checkpoint->has_thread = pthread_create(&checkpoint->thread, NULL, run_behind, checkpoint) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return checkpoint->has_thread;
}

void fsdpi_work_start(fsdp_checkpoint *checkpoint, fsdp_status (*work)(fsdp_checkpoint *checkpoint))
{
    checkpoint->work       = work;
    checkpoint->status     = FSDP_OK;
    checkpoint->problem    = (fsdpi_problem){0};
    checkpoint->has_thread = false;
    atomic_store_explicit(&checkpoint->done, false, memory_order_relaxed);
    if (!checkpoint->asynchronous || !start_thread(checkpoint)) {
        (void)run(checkpoint);
    }
}

void fsdpi_work_join(fsdp_checkpoint *checkpoint)
{
    if (checkpoint->has_thread && checkpoint->ctx->copy_of == 0) { /* in a fork there is no such thread */
        (void)pthread_join(checkpoint->thread, NULL);
        checkpoint->has_thread = false;
    }
}
