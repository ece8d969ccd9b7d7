#include "lib/mailbox.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/context.h"
#include "lib/device/device.h"
#include "lib/error.h"
#include "lib/memory.h"

/*
 * Looks at a word before giving way: some microseconds, in which a peer on a core of its own answers. Across nodes one look
 * has to do: the peer itself waits for the network, and nodes that are only pretended share the cores.
 */
enum { LOOKS = 200 };

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static size_t round_up(size_t bytes, size_t multiple)
{
    return (bytes + multiple - 1) / multiple * multiple;
}

size_t fsdpi_desk_bytes(int size)
{
    return round_up(sizeof(fsdpi_desk) + (size_t)size * sizeof(uint64_t), FSDPI_ALIGNMENT);
}

/* Lists are as long as the context has ranks, so that a budget need not know the nodes. */
size_t fsdpi_mailbox_bookkeeping(int size)
{
    return fsdpi_alloc_size((size_t)size * sizeof(fsdpi_desk *)) +
           fsdpi_alloc_size((size_t)size * sizeof(unsigned char *)) + fsdpi_alloc_size((size_t)size * sizeof(long)) +
           fsdpi_alloc_size(fsdpi_desk_bytes(size));
}

/* Every rank's part: its desk, then its staging memory; whole pages, so that each lies on its own NUMA node. */
static size_t part_bytes(const fsdp_context *ctx)
{
    return round_up(fsdpi_desk_bytes(ctx->size) + fsdpi_alloc_size((size_t)ctx->config.staging_bytes),
                    (size_t)sysconf(_SC_PAGESIZE));
}

static fsdp_status allocate_lists(fsdp_context *ctx, fsdpi_mailbox *box)
{
    const size_t n = (size_t)ctx->size;

    box->desks = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, n * sizeof(fsdpi_desk *));
    box->areas = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, n * sizeof(unsigned char *));
    box->pids  = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, n * sizeof(long));
    return box->desks != NULL && box->areas != NULL && box->pids != NULL ? FSDP_OK : FSDP_ERR_MEMORY;
}

/* A rank alone on its node needs nothing that others see. */
static fsdp_status open_segment(fsdp_context *ctx, size_t part)
{
    fsdpi_segment *segment = &ctx->box.segment;

    if (ctx->nodes.size > 1) {
        return fsdpi_segment_open(ctx, (size_t)ctx->nodes.size * part, (size_t)ctx->nodes.position * part, part,
                                  segment);
    }
    segment->base  = ctx->device->alloc(part);
    segment->bytes = part;
    return segment->base != NULL
               ? FSDP_OK
               : fsdpi_fail(ctx, FSDP_ERR_MEMORY,
                            "no memory for %zu bytes of staging buffers; lower FSDP_STAGING_BYTES", part);
}

fsdp_status fsdpi_mailbox_open(fsdp_context *ctx)
{
    fsdpi_mailbox    *box     = &ctx->box;
    const size_t      part    = part_bytes(ctx);
    const fsdp_status lists   = allocate_lists(ctx, box);
    const fsdp_status segment = open_segment(ctx, part);

    if (lists != FSDP_OK || segment != FSDP_OK) {
        return lists != FSDP_OK ? lists : segment;
    }
    for (int p = 0; p < ctx->nodes.size; p++) {
        unsigned char *begin = box->segment.base + (size_t)p * part;
        box->desks[p]        = (fsdpi_desk *)(void *)begin;
        box->areas[p]        = begin + fsdpi_desk_bytes(ctx->size);
    }
    box->slot_bytes = (size_t)ctx->config.staging_bytes / 4 / FSDPI_LINE * FSDPI_LINE;
    box->rest_bytes = (size_t)ctx->config.staging_bytes - 2 * box->slot_bytes;
    fsdpi_count_memory(ctx, FSDP_MEMORY_STAGING, (size_t)ctx->config.staging_bytes);
    fsdpi_count_memory(ctx, FSDP_MEMORY_BOOKKEEPING, fsdpi_desk_bytes(ctx->size));
    return FSDP_OK;
}

void fsdpi_mailbox_close(fsdp_context *ctx)
{
    fsdpi_mailbox *box = &ctx->box;
    const size_t   n   = (size_t)ctx->size;

    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, box->desks, n * sizeof(fsdpi_desk *));
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, box->areas, n * sizeof(unsigned char *));
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, box->pids, n * sizeof(long));
    if (ctx->nodes.size > 1) {
        fsdpi_segment_close(&box->segment);
    } else if (box->segment.base != NULL) {
        ctx->device->release(box->segment.base);
    }
}

void fsdpi_mailbox_wake(fsdp_context *ctx)
{
    fsdpi_desk *desk = ctx->box.desks[ctx->nodes.position];

    /* The store before this and the look at the sleepers must not change places; see fsdpi_mailbox_sleep(). */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&desk->sleepers, memory_order_relaxed) != 0) {
        (void)atomic_fetch_add(&desk->bell, 1);
        (void)syscall(SYS_futex, &desk->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

void fsdpi_mailbox_post(fsdp_context *ctx, fsdpi_letter *letter, uint64_t number)
{
    ctx->box.number = number;
    ctx->box.seen   = 0;
    atomic_store_explicit(&letter->number, number, memory_order_release);
    fsdpi_mailbox_wake(ctx);
}

bool fsdpi_word_reached(fsdp_context *ctx, fsdpi_desk *desk, const _Atomic uint64_t *word, uint64_t value)
{
    const bool own_cores = ctx->nodes.count == 1 && ctx->nodes.size <= ctx->machine.cores;
    const int  looks     = own_cores ? LOOKS : 1;

    for (int i = 0; i < looks; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) >= value) {
            return true;
        }
        relax();
    }
    ctx->box.asleep_on    = word;
    ctx->box.asleep_value = value;
    ctx->box.asleep_at    = desk;
    return false;
}

bool fsdpi_mailbox_arrived(fsdp_context *ctx, uint64_t number)
{
    fsdpi_mailbox *box = &ctx->box;

    for (; box->seen < ctx->nodes.size; box->seen++) {
        const int p = box->seen;
        if (p != ctx->nodes.position &&
            !fsdpi_word_reached(ctx, box->desks[p], &fsdpi_letter_of(box, p, number)->number, number)) {
            return false;
        }
    }
    return true;
}

void fsdpi_milestone_set(fsdp_context *ctx, uint64_t milestone)
{
    ctx->box.seen = 0;
    atomic_store_explicit(&ctx->box.desks[ctx->nodes.position]->milestone, milestone, memory_order_release);
    fsdpi_mailbox_wake(ctx);
}

bool fsdpi_milestone_reached(fsdp_context *ctx, uint64_t milestone)
{
    fsdpi_mailbox *box = &ctx->box;

    for (; box->seen < ctx->nodes.size; box->seen++) {
        fsdpi_desk *desk = box->desks[box->seen];
        if (box->seen != ctx->nodes.position && !fsdpi_word_reached(ctx, desk, &desk->milestone, milestone)) {
            return false;
        }
    }
    return true;
}

bool fsdpi_mailbox_sleep(fsdp_context *ctx, double seconds)
{
    fsdpi_mailbox          *box  = &ctx->box;
    const struct timespec   most = {.tv_sec  = (time_t)seconds,
                                    .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    const _Atomic uint64_t *word = box->asleep_on;

    if (word == NULL) {
        return false;
    }
    fsdpi_desk *desk = box->asleep_at;
    (void)atomic_fetch_add(&desk->sleepers, 1);
    const uint32_t bell = atomic_load(&desk->bell);
    if (atomic_load(word) < box->asleep_value) { /* else it came while we were about to sleep */
        (void)syscall(SYS_futex, &desk->bell, FUTEX_WAIT, bell, &most, NULL, 0);
    }
    (void)atomic_fetch_sub(&desk->sleepers, 1);
    box->asleep_on = NULL;
    return true;
}
