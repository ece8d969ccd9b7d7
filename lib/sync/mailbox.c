#include "lib/sync/mailbox.h"

#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/device/device.h"
#include "lib/device/memory.h"
#include "lib/topology/place.h"

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

static size_t desk_bytes(void)
{
    return round_up(sizeof(fsdpi_desk), FSDPI_ALIGNMENT);
}

/* What a node has once: which rank is where. */
static size_t common_bytes(int size)
{
    return fsdpi_alloc_size(fsdpi_nodes_bytes(size));
}

size_t fsdpi_mailboxes_bookkeeping(int size, int n)
{
    const size_t positions = (size_t)fsdpi_positions(size);
    const size_t each      = fsdpi_alloc_size(positions * sizeof(fsdpi_desk *)) +
                        fsdpi_alloc_size(positions * sizeof(unsigned char *)) +
                        fsdpi_alloc_size(positions * sizeof(uint16_t)) + fsdpi_alloc_size(desk_bytes());

    return (size_t)n * each + common_bytes(size);
}

/* First what is there once, then every rank's part; whole pages, so that each lies on its own NUMA node. */
static size_t common_pages(const fsdpi_core *core)
{
    return round_up(common_bytes(core->size), (size_t)sysconf(_SC_PAGESIZE));
}

/* Of each mailbox a rank's desk, then its staging memory there. */
static size_t part_bytes(const size_t staging[], int n)
{
    size_t bytes = 0;

    for (int i = 0; i < n; i++) {
        bytes += desk_bytes() + fsdpi_alloc_size(staging[i]);
    }
    return round_up(bytes, (size_t)sysconf(_SC_PAGESIZE));
}

static fsdp_status allocate_lists(fsdpi_mailbox *box)
{
    const size_t n = (size_t)fsdpi_positions(box->core->size);

    box->desks      = fsdpi_alloc(box->core->ctx, FSDP_MEMORY_BOOKKEEPING, n * sizeof(fsdpi_desk *));
    box->areas      = fsdpi_alloc(box->core->ctx, FSDP_MEMORY_BOOKKEEPING, n * sizeof(unsigned char *));
    box->tree.below = fsdpi_alloc(box->core->ctx, FSDP_MEMORY_BOOKKEEPING, n * sizeof(uint16_t));
    return box->desks != NULL && box->areas != NULL && box->tree.below != NULL ? FSDP_OK : FSDP_ERR_MEMORY;
}

/* A rank alone on its node needs nothing that others see. */
static fsdp_status open_segment(fsdpi_mailbox *box, size_t part)
{
    fsdpi_segment     *segment = &box->segment;
    fsdpi_core        *core    = box->core;
    const fsdpi_nodes *nodes   = box->nodes;
    const size_t       common  = common_pages(core);
    const bool         leads   = nodes->position == 0;
    char               remedy[64];

    (void)snprintf(remedy, sizeof remedy, "lower FSDP_STAGING_BYTES (now %" PRId64 ")", core->config.staging_bytes);
    if (nodes->size > 1) {
        const fsdpi_segment_need need = {.bytes  = common + (size_t)nodes->size * part,
                                         .own    = leads ? 0 : common + (size_t)nodes->position * part,
                                         .n_own  = leads ? common + part : part,
                                         .remedy = remedy};
        return fsdpi_segment_open(core, nodes, &need, segment);
    }
    segment->base  = core->device->alloc(common + part);
    segment->bytes = common + part;
    return segment->base != NULL
               ? FSDP_OK
               : fsdpi_fail(core->ctx, FSDP_ERR_MEMORY,
                            "no memory for %zu bytes of staging buffers; lower FSDP_STAGING_BYTES", common + part);
}

/* Whether the tree depends on where ranks are bound. */
static bool needs_places(const fsdpi_mailbox *box)
{
    return box->core->config.node_group == 0 && fsdpi_tree_is_needed(box->nodes->size, 0);
}

static void begin(fsdpi_mailbox *box, size_t staging, fsdpi_core *core, const fsdpi_nodes *nodes)
{
    box->core       = core;
    box->nodes      = nodes;
    box->looks      = 1;
    box->direct     = nodes->size;
    box->position   = nodes->position;
    box->slot_bytes = staging / 4 / FSDPI_LINE * FSDPI_LINE;
    box->rest_bytes = staging - 2 * box->slot_bytes;
}

/* Its desk and staging memory are so many BYTES into each rank's part. */
static void lay_out(fsdpi_mailbox *box, size_t part, size_t offset)
{
    for (int p = 0; p < box->nodes->size; p++) {
        unsigned char *desk = box->segment.base + common_pages(box->core) + (size_t)p * part + offset;

        box->desks[p] = (fsdpi_desk *)(void *)desk;
        box->areas[p] = desk + desk_bytes();
    }
    box->bell = &box->desks[box->position]->bell;
}

/* What the node has once, and what each rank says of itself. */
static void enter(fsdpi_mailbox *first)
{
    const fsdpi_nodes *nodes = first->nodes;

    if (needs_places(first)) {
        first->desks[nodes->position]->place = fsdpi_place_now();
    }
    first->map = first->segment.base;
    if (nodes->position == 0) {
        fsdpi_nodes_copy(nodes, first->core->size, first->map);
    }
    fsdpi_count_memory(first->core->ctx, FSDP_MEMORY_BOOKKEEPING, common_bytes(first->core->size));
}

fsdp_status fsdpi_mailboxes_open(fsdpi_mailbox *const boxes[], const size_t staging[], int n, fsdpi_core *core,
                                 const fsdpi_nodes *nodes)
{
    const size_t part   = part_bytes(staging, n);
    fsdp_status  status = FSDP_OK;
    size_t       offset = 0;

    for (int i = 0; i < n; i++) {
        begin(boxes[i], staging[i], core, nodes);
        status = allocate_lists(boxes[i]) == FSDP_OK ? status : FSDP_ERR_MEMORY;
    }
    const fsdp_status segment = open_segment(boxes[0], part);
    if (status != FSDP_OK || segment != FSDP_OK) {
        return status != FSDP_OK ? status : segment;
    }
    for (int i = 0; i < n; i++) {
        boxes[i]->segment = boxes[0]->segment;
        lay_out(boxes[i], part, offset);
        offset += desk_bytes() + fsdpi_alloc_size(staging[i]);
        fsdpi_count_memory(core->ctx, FSDP_MEMORY_STAGING, fsdpi_alloc_size(staging[i]));
        fsdpi_count_memory(core->ctx, FSDP_MEMORY_BOOKKEEPING, desk_bytes());
    }
    enter(boxes[0]);
    return FSDP_OK;
}

static void free_lists(fsdpi_mailbox *box)
{
    const size_t n = (size_t)fsdpi_positions(box->core->size);

    fsdpi_free(box->core->ctx, FSDP_MEMORY_BOOKKEEPING, box->desks, n * sizeof(fsdpi_desk *));
    fsdpi_free(box->core->ctx, FSDP_MEMORY_BOOKKEEPING, box->areas, n * sizeof(unsigned char *));
    fsdpi_free(box->core->ctx, FSDP_MEMORY_BOOKKEEPING, box->tree.below, n * sizeof(uint16_t));
}

void fsdpi_mailboxes_close(fsdpi_mailbox *const boxes[], int n)
{
    fsdpi_mailbox *first = boxes[0];

    if (first->core == NULL) {
        return;
    }
    for (int i = 0; i < n; i++) {
        free_lists(boxes[i]);
    }
    if (first->nodes->size > 1) {
        fsdpi_segment_close(&first->segment);
    } else if (first->segment.base != NULL) {
        first->core->device->release(first->segment.base);
    }
}

void fsdpi_mailbox_set_cores(fsdpi_mailbox *box, int cores)
{
    box->looks = box->nodes->count == 1 && box->nodes->size <= cores ? LOOKS : 1;
}

static void wake(fsdpi_bell *bell)
{
    (void)atomic_fetch_add(&bell->rung, 1);
    (void)syscall(SYS_futex, &bell->rung, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void fsdpi_bell_ring(fsdpi_bell *bell)
{
    /* The store before this and the look at the sleepers must not change places; see fsdpi_mailbox_sleep(). */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&bell->sleepers, memory_order_relaxed) != 0) {
        wake(bell);
    }
}

/* A rank that is alone on its node has nobody who sleeps. */
static void ring(const fsdpi_mailbox *box, fsdpi_bell *bell)
{
    if (box->nodes->size > 1) {
        fsdpi_bell_ring(bell);
    }
}

void fsdpi_mailbox_post(fsdpi_mailbox *box, fsdpi_letter *letter, uint64_t number)
{
    box->number = number;
    box->seen   = 0;
    atomic_store_explicit(&letter->number, number, memory_order_release);
    ring(box, box->bell);
}

bool fsdpi_word_reached(fsdpi_mailbox *box, fsdpi_bell *bell, const _Atomic uint64_t *word, uint64_t value)
{
    const int looks = box->hurried ? 1 : box->looks;

    for (int i = 0; i < looks; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) >= value) {
            return true;
        }
        relax();
    }
    box->asleep_on    = word;
    box->asleep_value = value;
    box->asleep_at    = bell;
    return false;
}

bool fsdpi_mailbox_arrived(fsdpi_mailbox *box, uint64_t number)
{
    const int n = box->direct, position = box->position;

    for (; box->seen < n; box->seen++) {
        const int p = box->seen;
        if (p != position &&
            !fsdpi_word_reached(box, &box->desks[p]->bell, &fsdpi_letter_of(box, p, number)->number, number)) {
            return false;
        }
    }
    return n > 0 || fsdpi_tree_arrived(box, number);
}

bool fsdpi_mailbox_heard(fsdpi_mailbox *box, uint64_t number)
{
    return fsdpi_mailbox_has_tree(box) ? fsdpi_tree_heard(box, number) : fsdpi_mailbox_arrived(box, number);
}

void fsdpi_mailbox_tell(fsdpi_mailbox *box, uint64_t number, const fsdpi_opinion *verdict)
{
    fsdpi_desk   *desk  = box->desks[box->position];
    fsdpi_letter *board = &desk->board[number & 1];

    fsdpi_write_opinion(board, verdict);
    atomic_store_explicit(&board->number, number, memory_order_release);
    ring(box, &desk->told);
}

bool fsdpi_mailbox_told(fsdpi_mailbox *box, uint64_t number)
{
    fsdpi_desk         *teller = box->desks[box->tree.above];
    const fsdpi_letter *board  = &teller->board[number & 1];

    if (!fsdpi_word_reached(box, &teller->told, &board->number, number)) {
        return false;
    }
    if (box->tree.n > 0) {
        const fsdpi_opinion verdict = fsdpi_read_opinion(board);
        fsdpi_mailbox_tell(box, number, &verdict);
    }
    return true;
}

void fsdpi_milestone_set(fsdpi_mailbox *box, uint64_t milestone)
{
    box->seen = 0;
    atomic_store_explicit(&box->desks[box->position]->milestone, milestone, memory_order_release);
    ring(box, box->bell);
}

bool fsdpi_milestone_reached(fsdpi_mailbox *box, uint64_t milestone)
{
    const int n = box->direct, position = box->position;

    for (; box->seen < n; box->seen++) {
        fsdpi_desk *desk = box->desks[box->seen];
        if (box->seen != position && !fsdpi_word_reached(box, &desk->bell, &desk->milestone, milestone)) {
            return false;
        }
    }
    return n > 0 || fsdpi_tree_reached(box, milestone);
}

bool fsdpi_mailbox_sleep(fsdpi_mailbox *box, double seconds)
{
    const struct timespec   most = {.tv_sec  = (time_t)seconds,
                                    .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    const _Atomic uint64_t *word = box->asleep_on;

    if (word == NULL) {
        return false;
    }
    fsdpi_bell *bell = box->asleep_at;
    (void)atomic_fetch_add(&bell->sleepers, 1);
    atomic_store(&box->sleeps_at, bell);
    const uint32_t rung = atomic_load(&bell->rung);
    if (atomic_load(word) < box->asleep_value) { /* else it came while we were about to sleep */
        (void)syscall(SYS_futex, &bell->rung, FUTEX_WAIT, rung, &most, NULL, 0);
    }
    atomic_store(&box->sleeps_at, NULL);
    (void)atomic_fetch_sub(&bell->sleepers, 1);
    box->asleep_on = NULL;
    return true;
}

void fsdpi_mailbox_rouse(fsdpi_mailbox *box)
{
    fsdpi_bell *bell = atomic_load(&box->sleeps_at);

    if (bell != NULL) {
        wake(bell);
    }
}

void fsdpi_mailbox_set_landed(fsdpi_mailbox *box, fsdpi_landed what, uint64_t chunks)
{
    fsdpi_landing *landing = &box->desks[box->nodes->position]->landed[what];

    atomic_store_explicit(&landing->chunks, chunks, memory_order_release);
    atomic_store_explicit(&landing->number, box->number, memory_order_release);
    ring(box, box->bell);
}

uint64_t fsdpi_mailbox_landed(const fsdpi_mailbox *box, int position, fsdpi_landed what)
{
    const fsdpi_landing *landing = &box->desks[position]->landed[what];

    if (atomic_load_explicit(&landing->number, memory_order_acquire) != box->number) {
        return 0;
    }
    return atomic_load_explicit(&landing->chunks, memory_order_acquire);
}

/* ---- giving up --------------------------------------------------------------------------------------------------- */

/* The position whose word the last poll found wanting; -1: nobody's. */
static int awaited_position(const fsdpi_mailbox *box)
{
    const unsigned char *word = (const unsigned char *)box->asleep_on;

    for (int p = 0; p < box->nodes->size; p++) {
        const unsigned char *desk = (const unsigned char *)box->desks[p], *slots = box->areas[p];

        if ((word >= desk && word < desk + sizeof(fsdpi_desk)) ||
            (word >= slots && word < slots + 2 * box->slot_bytes)) {
            return p;
        }
    }
    return -1;
}

/* Whether a position has come as far as the one that is awaited should have. */
static bool has_come(const fsdpi_mailbox *box, int position, const fsdpi_desk *awaited)
{
    const bool is_milestone =
        box->asleep_on == &awaited->milestone || box->asleep_on == &awaited->sum || box->asleep_on == &awaited->all;

    return is_milestone ? atomic_load(&box->desks[position]->milestone) >= box->asleep_value
                        : atomic_load(&fsdpi_letter_of(box, position, box->asleep_value)->number) >= box->asleep_value;
}

static void add_position(const fsdpi_mailbox *box, int position, fsdpi_rank_list *list)
{
    fsdpi_rank_list_add(list, fsdpi_rank_at(box->nodes, box->nodes->mine, position));
}

/* In a tree it is those below that are missing themselves, and who has not passed on what has come. */
void fsdpi_mailbox_awaited(const fsdpi_mailbox *box, fsdpi_rank_list *list)
{
    if (box->asleep_on == NULL || atomic_load(box->asleep_on) >= box->asleep_value) {
        return;
    }
    const int position = awaited_position(box);
    if (position < 0) {
        return;
    }
    const fsdpi_desk *desk    = box->desks[position];
    const bool        is_told = box->asleep_on == &desk->board[0].number || box->asleep_on == &desk->board[1].number;

    add_position(box, position, list);
    for (int p = 0; p < box->direct && !is_told; p++) {
        if (p != box->position && p != position && !has_come(box, p, desk)) {
            add_position(box, p, list);
        }
    }
    for (int i = 0; i < box->tree.n && !is_told; i++) {
        const int below = box->tree.below[i];
        if (below != position && !has_come(box, below, desk)) {
            add_position(box, below, list);
        }
    }
}

bool fsdpi_mailbox_claim(fsdpi_mailbox *box, uint64_t number)
{
    _Atomic uint64_t *claimed = &box->desks[0]->claimed;
    uint64_t          last    = atomic_load(claimed);

    while (last < number) {
        if (atomic_compare_exchange_weak(claimed, &last, number)) {
            return true;
        }
    }
    return false;
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
    fsdpi_bell_ring(&desk->bell);
    fsdpi_bell_ring(&desk->told);
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
