#include "lib/sync/mailbox.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/device/device.h"
#include "lib/device/memory.h"

/*
 * Looks at a word before giving way: some microseconds, in which a peer on a core of its own answers. Across nodes one look
 * has to do: the peer itself waits for the network, and nodes that are only pretended share the cores.
 */
enum { LOOKS = 200 };

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* waits for the pipeline; YIELD does nothing where a core has one hardware thread */
#endif
}

static size_t round_up(size_t bytes, size_t multiple)
{
    return (bytes + multiple - 1) / multiple * multiple;
}

size_t fsdpi_desk_bytes(void)
{
    return round_up(sizeof(fsdpi_desk), FSDPI_ALIGNMENT);
}

/* What a node has once: landings, and the arrays of all nodes. */
static size_t landings_bytes(int size)
{
    return fsdpi_alloc_size((size_t)size * sizeof(fsdpi_landing));
}

static size_t common_bytes(int size)
{
    return landings_bytes(size) + fsdpi_alloc_size(fsdpi_nodes_bytes(size));
}

size_t fsdpi_mailbox_bookkeeping(int size)
{
    const size_t n = (size_t)fsdpi_positions(size);

    return fsdpi_alloc_size(n * sizeof(fsdpi_desk *)) + fsdpi_alloc_size(n * sizeof(unsigned char *)) +
           fsdpi_alloc_size(fsdpi_desk_bytes()) + common_bytes(size);
}

/* First what is there once, then every rank's part; whole pages, so that each lies on its own NUMA node. */
static size_t common_pages(const fsdpi_core *core)
{
    return round_up(common_bytes(core->size), (size_t)sysconf(_SC_PAGESIZE));
}

/* A rank's desk, then its staging memory. */
static size_t part_bytes(const fsdpi_core *core)
{
    return round_up(fsdpi_desk_bytes() + fsdpi_alloc_size((size_t)core->config.staging_bytes),
                    (size_t)sysconf(_SC_PAGESIZE));
}

static fsdp_status allocate_lists(fsdpi_mailbox *box)
{
    const size_t n = (size_t)fsdpi_positions(box->core->size);

    box->desks = fsdpi_alloc(box->core->ctx, FSDP_MEMORY_BOOKKEEPING, n * sizeof(fsdpi_desk *));
    box->areas = fsdpi_alloc(box->core->ctx, FSDP_MEMORY_BOOKKEEPING, n * sizeof(unsigned char *));
    return box->desks != NULL && box->areas != NULL ? FSDP_OK : FSDP_ERR_MEMORY;
}

/* A rank alone on its node needs nothing that others see. */
static fsdp_status open_segment(fsdpi_mailbox *box, size_t part)
{
    fsdpi_segment     *segment = &box->segment;
    fsdpi_core        *core    = box->core;
    const fsdpi_nodes *nodes   = box->nodes;
    const size_t       common  = common_pages(core);
    const size_t       own     = nodes->position == 0 ? 0 : common + (size_t)nodes->position * part;

    if (nodes->size > 1) {
        return fsdpi_segment_open(core, nodes, common + (size_t)nodes->size * part, own,
                                  nodes->position == 0 ? common + part : part, segment);
    }
    segment->base  = core->device->alloc(common + part);
    segment->bytes = common + part;
    return segment->base != NULL
               ? FSDP_OK
               : fsdpi_fail(core->ctx, FSDP_ERR_MEMORY,
                            "no memory for %zu bytes of staging buffers; lower FSDP_STAGING_BYTES", common + part);
}

fsdp_status fsdpi_mailbox_open(fsdpi_mailbox *box, fsdpi_core *core, const fsdpi_nodes *nodes)
{
    box->core  = core;
    box->nodes = nodes;
    box->looks = 1;

    const size_t      part    = part_bytes(core);
    const fsdp_status lists   = allocate_lists(box);
    const fsdp_status segment = open_segment(box, part);

    if (lists != FSDP_OK || segment != FSDP_OK) {
        return lists != FSDP_OK ? lists : segment;
    }
    for (int p = 0; p < nodes->size; p++) {
        unsigned char *begin = box->segment.base + common_pages(core) + (size_t)p * part;
        box->desks[p]        = (fsdpi_desk *)(void *)begin;
        box->areas[p]        = begin + fsdpi_desk_bytes();
    }
    box->landings = (fsdpi_landing *)(void *)box->segment.base;
    box->map      = box->segment.base + landings_bytes(core->size);
    if (nodes->position == 0) {
        memcpy(box->map, nodes->node_of, fsdpi_nodes_bytes(core->size));
    }
    box->slot_bytes = (size_t)core->config.staging_bytes / 4 / FSDPI_LINE * FSDPI_LINE;
    box->rest_bytes = (size_t)core->config.staging_bytes - 2 * box->slot_bytes;
    fsdpi_count_memory(core->ctx, FSDP_MEMORY_STAGING, (size_t)core->config.staging_bytes);
    fsdpi_count_memory(core->ctx, FSDP_MEMORY_BOOKKEEPING, fsdpi_desk_bytes());
    fsdpi_count_memory(core->ctx, FSDP_MEMORY_BOOKKEEPING, common_bytes(core->size));
    return FSDP_OK;
}

void fsdpi_mailbox_close(fsdpi_mailbox *box)
{
    if (box->core == NULL) {
        return;
    }
    const size_t n = (size_t)fsdpi_positions(box->core->size);

    fsdpi_free(box->core->ctx, FSDP_MEMORY_BOOKKEEPING, box->desks, n * sizeof(fsdpi_desk *));
    fsdpi_free(box->core->ctx, FSDP_MEMORY_BOOKKEEPING, box->areas, n * sizeof(unsigned char *));
    if (box->nodes->size > 1) {
        fsdpi_segment_close(&box->segment);
    } else if (box->segment.base != NULL) {
        box->core->device->release(box->segment.base);
    }
}

void fsdpi_mailbox_set_cores(fsdpi_mailbox *box, int cores)
{
    box->looks = box->nodes->count == 1 && box->nodes->size <= cores ? LOOKS : 1;
}

void fsdpi_mailbox_wake(fsdpi_mailbox *box)
{
    fsdpi_desk *desk = box->desks[box->nodes->position];

    /* The store before this and the look at the sleepers must not change places; see fsdpi_mailbox_sleep(). */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&desk->sleepers, memory_order_relaxed) != 0) {
        (void)atomic_fetch_add(&desk->bell, 1);
        (void)syscall(SYS_futex, &desk->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

void fsdpi_mailbox_post(fsdpi_mailbox *box, fsdpi_letter *letter, uint64_t number)
{
    box->number = number;
    box->seen   = 0;
    atomic_store_explicit(&letter->number, number, memory_order_release);
    fsdpi_mailbox_wake(box);
}

bool fsdpi_word_reached(fsdpi_mailbox *box, fsdpi_desk *desk, const _Atomic uint64_t *word, uint64_t value)
{
    const int looks = box->looks;

    for (int i = 0; i < looks; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) >= value) {
            return true;
        }
        relax();
    }
    box->asleep_on    = word;
    box->asleep_value = value;
    box->asleep_at    = desk;
    return false;
}

bool fsdpi_mailbox_arrived(fsdpi_mailbox *box, uint64_t number)
{
    const int size = box->nodes->size, position = box->nodes->position;

    for (; box->seen < size; box->seen++) {
        const int p = box->seen;
        if (p != position &&
            !fsdpi_word_reached(box, box->desks[p], &fsdpi_letter_of(box, p, number)->number, number)) {
            return false;
        }
    }
    return true;
}

void fsdpi_milestone_set(fsdpi_mailbox *box, uint64_t milestone)
{
    box->seen = 0;
    atomic_store_explicit(&box->desks[box->nodes->position]->milestone, milestone, memory_order_release);
    fsdpi_mailbox_wake(box);
}

bool fsdpi_milestone_reached(fsdpi_mailbox *box, uint64_t milestone)
{
    const int size = box->nodes->size, position = box->nodes->position;

    for (; box->seen < size; box->seen++) {
        fsdpi_desk *desk = box->desks[box->seen];
        if (box->seen != position && !fsdpi_word_reached(box, desk, &desk->milestone, milestone)) {
            return false;
        }
    }
    return true;
}

bool fsdpi_mailbox_sleep(fsdpi_mailbox *box, double seconds)
{
    const struct timespec   most = {.tv_sec  = (time_t)seconds,
                                    .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    const _Atomic uint64_t *word = box->asleep_on;

    if (word == NULL) {
        return false;
    }
    fsdpi_desk *desk = box->asleep_at;
    (void)atomic_fetch_add(&desk->sleepers, 1);
    atomic_store(&box->sleeps_at, desk);
    const uint32_t bell = atomic_load(&desk->bell);
    if (atomic_load(word) < box->asleep_value) { /* else it came while we were about to sleep */
        (void)syscall(SYS_futex, &desk->bell, FUTEX_WAIT, bell, &most, NULL, 0);
    }
    atomic_store(&box->sleeps_at, NULL);
    (void)atomic_fetch_sub(&desk->sleepers, 1);
    box->asleep_on = NULL;
    return true;
}

void fsdpi_mailbox_rouse(fsdpi_mailbox *box)
{
    fsdpi_desk *desk = atomic_load(&box->sleeps_at);

    if (desk != NULL) {
        (void)atomic_fetch_add(&desk->bell, 1);
        (void)syscall(SYS_futex, &desk->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

void fsdpi_mailbox_set_landed(fsdpi_mailbox *box, int part, uint64_t chunks)
{
    fsdpi_landing *landing = &box->landings[part];

    atomic_store_explicit(&landing->chunks, chunks, memory_order_release);
    atomic_store_explicit(&landing->number, box->number, memory_order_release);
    fsdpi_mailbox_wake(box);
}

uint64_t fsdpi_mailbox_landed(const fsdpi_mailbox *box, int part)
{
    const fsdpi_landing *landing = &box->landings[part];

    if (atomic_load_explicit(&landing->number, memory_order_acquire) != box->number) {
        return 0;
    }
    return atomic_load_explicit(&landing->chunks, memory_order_acquire);
}

/* ---- giving up --------------------------------------------------------------------------------------------------- */

static bool has_come(const fsdpi_mailbox *box, int position)
{
    const fsdpi_desk *desk = box->desks[position];

    if (box->asleep_on == &box->asleep_at->milestone) {
        return atomic_load(&desk->milestone) >= box->asleep_value;
    }
    return atomic_load(&fsdpi_letter_of(box, position, box->asleep_value)->number) >= box->asleep_value;
}

/* Of the words of a desk, and of slots, which one it was. */
void fsdpi_mailbox_awaited(const fsdpi_mailbox *box, fsdpi_rank_list *list)
{
    const fsdpi_nodes *nodes = box->nodes;
    const fsdpi_desk  *desk  = box->asleep_at;

    if (box->asleep_on == NULL || atomic_load(box->asleep_on) >= box->asleep_value) {
        return;
    }
    if (box->asleep_on == &desk->board[0].number || box->asleep_on == &desk->board[1].number) {
        fsdpi_rank_list_add(list, fsdpi_rank_at(nodes, nodes->mine, 0));
        return;
    }
    for (int p = 0; p < nodes->size; p++) {
        if (p != nodes->position && !has_come(box, p)) {
            fsdpi_rank_list_add(list, fsdpi_rank_at(nodes, nodes->mine, p));
        }
    }
}

void fsdpi_mailbox_doubt(fsdpi_mailbox *box, bool doubts)
{
    for (int p = 0; p < box->nodes->size; p++) {
        if (doubts) {
            (void)atomic_fetch_add(&box->desks[p]->doubts, 1);
        } else {
            (void)atomic_fetch_sub(&box->desks[p]->doubts, 1);
        }
    }
    /* These stores and the next look must not change places; peers have a fence behind what they post. */
    atomic_thread_fence(memory_order_seq_cst);
}

void fsdpi_mailbox_leave_notice(fsdpi_mailbox *box, const fsdpi_notice *notice)
{
    fsdpi_desk *desk = box->desks[box->nodes->position];

    desk->notice = *notice;
    atomic_store_explicit(&desk->noticed, 1, memory_order_release);
    fsdpi_mailbox_wake(box);
}

const fsdpi_notice *fsdpi_mailbox_notice(const fsdpi_mailbox *box)
{
    for (int p = 0; p < box->nodes->size; p++) {
        if (atomic_load_explicit(&box->desks[p]->noticed, memory_order_acquire) != 0) {
            return &box->desks[p]->notice;
        }
    }
    return NULL;
}
