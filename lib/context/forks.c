#include "lib/context/forks.h"

#include <pthread.h>
#include <unistd.h>

#include "lib/base/lock.h"
#include "lib/context/context.h"

/* All contexts of the process. Who forks holds the lock meanwhile, so that the copy finds the list whole. */
static struct {
    fsdpi_lock    lock;
    fsdp_context *first;
} list;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
    fsdpi_lock_take(&list.lock);
}

static void in_parent(void)
{
    fsdpi_lock_give(&list.lock);
}

/* A thread that has held a lock of the context is not here to give it back. */
static void in_child(void)
{
    for (fsdp_context *ctx = list.first; ctx != NULL; ctx = ctx->next_watched) {
        ctx->copy_of = getppid();
        ctx->broken  = FSDP_ERR_STATE;
        fsdpi_lock_give(&ctx->error_lock);
        fsdpi_lock_give(&ctx->owned_lock);
        (void)pthread_mutex_init(&ctx->memory_lock, NULL);
        fsdpi_trace_forget(&ctx->trace);
        fsdpi_recorder_forget(&ctx->recorder);
    }
    fsdpi_lock_give(&list.lock);
}

static void ask_to_be_told(void)
{
    (void)pthread_atfork(before_fork, in_parent, in_child);
}

void fsdpi_forks_watch(fsdp_context *ctx)
{
    (void)pthread_once(&once, ask_to_be_told);
    fsdpi_lock_take(&list.lock);
    ctx->next_watched = list.first;
    list.first        = ctx;
    fsdpi_lock_give(&list.lock);
}

void fsdpi_forks_forget(fsdp_context *ctx)
{
    fsdpi_lock_take(&list.lock);
    for (fsdp_context **link = &list.first; *link != NULL; link = &(*link)->next_watched) {
        if (*link == ctx) {
            *link = ctx->next_watched;
            break;
        }
    }
    fsdpi_lock_give(&list.lock);
}
