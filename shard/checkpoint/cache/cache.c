#include "shard/checkpoint/cache/cache.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/yielding.h"
#include "lib/device/memory.h"
#include "shard/checkpoint/cache/cache_folder.h"
#include "shard/checkpoint/common/checks.h"

enum {
    META_ROOM     = 1 << 14, /* beyond what is asked for: a text that grows by a digit is no reason to reserve again */
    FIRST_STEPS   = 8,       /* in which a copy is sent while nothing is known of the program */
    SHARE_OF_STEP = 3,       /* a copy is to be there when so many quarters of the steps up to the next one are done */
    NICE          = 10
};

/* ---- who is whose partner ------------------------------------------------------------------------------------------- */

static int rank_beside(const fsdpi_nodes *nodes, int node, int position)
{
    return fsdpi_rank_at(nodes, node, position % fsdpi_node_size(nodes, node));
}

/* Of the node before this one, those whose positions come round to this rank's. */
static size_t list_sources(const fsdpi_cache *cache, fsdpi_cache_copy *copies)
{
    const fsdpi_nodes *nodes  = &cache->nodes;
    const int          before = (nodes->mine + nodes->count - 1) % nodes->count;
    size_t             n      = 0;

    for (int p = nodes->position; nodes->count > 1 && p < fsdpi_node_size(nodes, before); p += nodes->size) {
        if (copies != NULL) {
            copies[n].rank = fsdpi_rank_at(nodes, before, p);
        }
        n++;
    }
    return n;
}

/* ---- opening --------------------------------------------------------------------------------------------------------- */

static void name_files(fsdpi_cache *cache)
{
    for (int s = 0; s < FSDPI_CACHE_SLOTS; s++) {
        fsdpi_cache_folder_file(cache->folder, false, cache->ctx->rank, s, cache->own[s].path);
        for (size_t i = 0; i < cache->n_copies; i++) {
            fsdpi_cache_copy *copy = &cache->copies[i];

            fsdpi_cache_folder_file(cache->folder, true, copy->rank, s, copy->slots[s].path);
        }
    }
}

static fsdp_status open_here(fsdpi_cache *cache, const char *function)
{
    fsdpi_problem problem = {0};

    cache->n_copies = list_sources(cache, NULL);
    cache->copies   = fsdpi_alloc(cache->ctx, FSDP_MEMORY_BOOKKEEPING, cache->n_copies * sizeof(fsdpi_cache_copy));
    if (cache->copies == NULL && cache->n_copies > 0) {
        cache->n_copies = 0;
        return FSDP_ERR_MEMORY;
    }
    (void)list_sources(cache, cache->copies);
    name_files(cache);
    cache->in_memory = false;
    if (fsdpi_cache_folder_make(cache->folder, &problem) != FSDP_OK) {
        return fsdpi_fail_problem(cache->ctx, function, &problem);
    }
    cache->in_memory = fsdpi_cache_folder_is_memory(cache->folder);
    return FSDP_OK;
}

static fsdp_status open_deliveries(fsdpi_cache *cache)
{
    const fsdpi_nodes *nodes = &cache->nodes;

    if (nodes->count > 1) {
        cache->partner = rank_beside(nodes, (nodes->mine + 1) % nodes->count, nodes->position);
        FSDP_TRY(fsdpi_delivery_open(&cache->out, cache->ctx, cache->comm, cache->partner, true));
    }
    for (size_t i = 0; i < cache->n_copies; i++) {
        FSDP_TRY(
            fsdpi_delivery_open(&cache->copies[i].delivery, cache->ctx, cache->comm, cache->copies[i].rank, false));
    }
    return FSDP_OK;
}

fsdp_status fsdpi_cache_locate(fsdpi_cache *cache, fsdp_context *ctx)
{
    *cache              = (fsdpi_cache){.ctx = ctx, .comm = MPI_COMM_NULL, .partner = -1};
    cache->nodes_memory = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, fsdpi_nodes_bytes(ctx->size));
    return fsdpi_nodes_find(ctx, ctx->comm, ctx->config.checkpoint_cache, 0, ctx->config.timeout_s, cache->nodes_memory,
                            &cache->nodes);
}

fsdp_status fsdpi_cache_open(fsdpi_cache *cache, const char *folder, const char *run, const char *attempt,
                             const char *function)
{
    fsdp_context *ctx = cache->ctx;

    memcpy(cache->folder, folder, strlen(folder) + 1);
    memcpy(cache->run, run, strnlen(run, sizeof cache->run - 1));
    memcpy(cache->attempt, attempt, strnlen(attempt, sizeof cache->attempt - 1));
    FSDP_TRY(fsdpi_agree(ctx, function, "cache", 0, open_here(cache, function), true));
    FSDPI_TRY_MPI(ctx, fsdpi_mpi_duplicate(ctx->comm, &cache->comm, ctx->config.timeout_s));
    return fsdpi_agree(ctx, function, "cache", 0, open_deliveries(cache), true);
}

/* ---- room ------------------------------------------------------------------------------------------------------------ */

static size_t bytes_of(const fsdpi_cache_sizes *sizes)
{
    return fsdpi_cache_file_bytes(sizes->image_bytes, sizes->n_chunks, sizes->meta_bytes);
}

bool fsdpi_cache_must_grow(const fsdpi_cache *cache, const fsdpi_cache_sizes *sizes)
{
    return bytes_of(sizes) > cache->own[0].bytes;
}

static void count(fsdpi_cache *cache)
{
    size_t bytes = 0;

    for (int s = 0; cache->in_memory && s < FSDPI_CACHE_SLOTS; s++) {
        bytes += cache->own[s].bytes;
        for (size_t i = 0; i < cache->n_copies; i++) {
            bytes += cache->copies[i].slots[s].bytes;
        }
    }
    if (bytes != cache->counted) {
        fsdpi_uncount_memory(cache->ctx, FSDP_MEMORY_STAGING, cache->counted);
        fsdpi_count_memory(cache->ctx, FSDP_MEMORY_STAGING, bytes);
        cache->counted = bytes;
    }
}

/* What the partner will have of this rank, and this rank of others. */
static fsdp_status exchange_sizes(fsdpi_cache *cache, uint64_t *own)
{
    for (size_t i = 0; i < cache->n_copies; i++) {
        FSDP_TRY(fsdpi_delivery_tell(&cache->copies[i].delivery, &cache->copies[i].bytes));
    }
    if (cache->partner >= 0) {
        FSDP_TRY(fsdpi_delivery_tell(&cache->out, own));
        FSDP_TRY(fsdpi_delivery_wait(&cache->out));
    }
    for (size_t i = 0; i < cache->n_copies; i++) {
        FSDP_TRY(fsdpi_delivery_wait(&cache->copies[i].delivery));
    }
    return FSDP_OK;
}

static fsdp_status reserve_files(fsdpi_cache *cache, size_t own, fsdpi_problem *problem)
{
    for (int s = 0; s < FSDPI_CACHE_SLOTS; s++) {
        FSDP_TRY(fsdpi_cache_file_reserve(&cache->own[s], own, problem));
        for (size_t i = 0; i < cache->n_copies; i++) {
            FSDP_TRY(fsdpi_cache_file_reserve(&cache->copies[i].slots[s], (size_t)cache->copies[i].bytes, problem));
        }
    }
    return FSDP_OK;
}

fsdp_status fsdpi_cache_reserve(fsdpi_cache *cache, const fsdpi_cache_sizes *sizes, const char *function)
{
    fsdpi_cache_sizes wished  = *sizes;
    fsdpi_problem     problem = {0};

    wished.meta_bytes += META_ROOM;
    const bool grows = fsdpi_cache_must_grow(cache, sizes);
    uint64_t   own   = grows ? bytes_of(&wished) : cache->own[0].bytes;
    FSDP_TRY(exchange_sizes(cache, &own));
    const fsdp_status status = reserve_files(cache, (size_t)own, &problem);
    count(cache);
    return fsdpi_agree(cache->ctx, function, "room for caches", 0,
                       status == FSDP_OK ? FSDP_OK : fsdpi_fail_problem(cache->ctx, function, &problem), true);
}

size_t fsdpi_cache_staging(const fsdpi_cache *cache)
{
    return fsdpi_alloc_size(cache->counted);
}

size_t fsdpi_cache_bookkeeping(const fsdpi_cache *cache)
{
    if (cache->ctx == NULL) {
        return 0;
    }
    size_t bytes = fsdpi_alloc_size(cache->n_copies * sizeof(fsdpi_cache_copy)) +
                   fsdpi_alloc_size(fsdpi_nodes_bytes(cache->ctx->size)) + fsdpi_delivery_bookkeeping(&cache->out);
    for (size_t i = 0; i < cache->n_copies; i++) {
        bytes += fsdpi_delivery_bookkeeping(&cache->copies[i].delivery);
    }
    return bytes;
}

/* ---- a generation ---------------------------------------------------------------------------------------------------- */

static int slot_of(const fsdpi_cache *cache)
{
    return (int)(cache->generation % FSDPI_CACHE_SLOTS);
}

const fsdpi_cache_file *fsdpi_cache_begin(fsdpi_cache *cache, const fsdpi_cache_sizes *sizes, uint64_t step,
                                          uint64_t base)
{
    cache->generation++;
    cache->step                  = step;
    const int               slot = slot_of(cache);
    const fsdpi_cache_file *file = &cache->own[slot];
    fsdpi_cache_file_begin(file);
    fsdpi_cache_head *head = fsdpi_cache_head_of(file);
    memcpy(head->run, cache->run, sizeof head->run);
    memcpy(head->attempt, cache->attempt, sizeof head->attempt);
    head->step        = step;
    head->generation  = cache->generation;
    head->base        = base;
    head->ranks       = (uint64_t)cache->ctx->size;
    head->owner       = (uint64_t)cache->ctx->rank;
    head->image_bytes = sizes->image_bytes;
    head->n_chunks    = sizes->n_chunks;
    head->meta_bytes  = sizes->meta_bytes;
    for (size_t i = 0; i < cache->n_copies; i++) {
        fsdpi_cache_file_begin(&cache->copies[i].slots[slot]);
    }
    return file;
}

void fsdpi_cache_give_up(fsdpi_cache *cache)
{
    cache->generation--;
}

static void *seal(void *argument)
{
    fsdpi_cache *cache = argument;

    fsdpi_cache_file_seal(&cache->own[slot_of(cache)]);
    atomic_store_explicit(&cache->sealed, true, memory_order_release);
    return NULL;
}

static void *seal_behind(void *argument)
{
    (void)setpriority(PRIO_PROCESS, 0, NICE); /* steps come first */
    return seal(argument);
}

/* It takes no signals; where there is no thread to be had, the work is done at once. */
static void start_sealing(fsdpi_cache *cache)
{
    sigset_t all, before;

    atomic_store_explicit(&cache->sealed, false, memory_order_relaxed);
    (void)sigfillset(&all);
    cache->has_thread = false;
    if (pthread_sigmask(SIG_SETMASK, &all, &before) == 0) {
        cache->has_thread = pthread_create(&cache->thread, NULL, seal_behind, cache) == 0;
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (!cache->has_thread) {
        (void)seal(cache);
    }
}

static void join(fsdpi_cache *cache)
{
    if (cache->has_thread && cache->ctx->copy_of == 0) {
        (void)pthread_join(cache->thread, NULL);
        cache->has_thread = false;
    }
}

void fsdpi_cache_written(fsdpi_cache *cache)
{
    const int slot = slot_of(cache);

    if (cache->partner >= 0) {
        fsdpi_delivery_begin(&cache->out, &cache->own[slot], fsdpi_cache_head_of(&cache->own[slot]));
    }
    for (size_t i = 0; i < cache->n_copies; i++) {
        fsdpi_delivery_begin(&cache->copies[i].delivery, &cache->copies[i].slots[slot], &cache->copies[i].came);
        cache->copies[i].whole = false;
    }
    cache->expected  = cache->calls > 0 ? cache->calls : FIRST_STEPS;
    cache->calls     = 0;
    cache->under_way = true;
    start_sealing(cache);
}

/* BYTES that are to be under way by now of those that there are: the same part each step. */
static size_t due(const fsdpi_cache *cache, size_t bytes)
{
    const uint64_t steps = cache->expected * SHARE_OF_STEP / 4 + 1;

    return cache->calls >= steps ? bytes : (size_t)((double)bytes * (double)cache->calls / (double)steps) + 1;
}

/* BYTES of the messages that have no sum of a chunk in them. */
static size_t before_sums(const fsdpi_cache *cache)
{
    const fsdpi_delivery *out = &cache->out;
    const size_t sums = (size_t)((unsigned char *)fsdpi_cache_chunks_of(&cache->own[slot_of(cache)]) - out->body);

    return sums / out->piece * out->piece;
}

static fsdp_status advance_out(fsdpi_cache *cache, bool all, bool *complete)
{
    fsdpi_delivery *out    = &cache->out;
    const bool      sealed = atomic_load_explicit(&cache->sealed, memory_order_acquire);
    const size_t    most   = sealed ? out->bytes : before_sums(cache);
    const size_t    wished = all ? out->bytes : due(cache, out->bytes);

    FSDP_TRY(fsdpi_delivery_post(out, wished < most ? wished : most));
    if (out->posted == out->n && sealed) {
        FSDP_TRY(fsdpi_delivery_post_head(out));
    }
    return fsdpi_delivery_test(out, complete);
}

static void take_copy(const fsdpi_cache *cache, fsdpi_cache_copy *copy)
{
    fsdpi_cache_file_take(&copy->slots[slot_of(cache)], &copy->came);
    copy->whole = true;
}

/* What has come is whole when its head is in its place. */
static fsdp_status advance_copy(fsdpi_cache *cache, fsdpi_cache_copy *copy, bool all, bool *complete)
{
    fsdpi_delivery *delivery = &copy->delivery;

    FSDP_TRY(fsdpi_delivery_post(delivery, all ? delivery->bytes : due(cache, delivery->bytes)));
    if (delivery->posted == delivery->n) {
        FSDP_TRY(fsdpi_delivery_post_head(delivery));
    }
    FSDP_TRY(fsdpi_delivery_test(delivery, complete));
    if (*complete && !copy->whole) {
        take_copy(cache, copy);
    }
    return FSDP_OK;
}

static fsdp_status advance(fsdpi_cache *cache, bool all)
{
    bool complete = true, one;

    for (size_t i = 0; i < cache->n_copies; i++) {
        FSDP_TRY(advance_copy(cache, &cache->copies[i], all, &one));
        complete = complete && one;
    }
    if (cache->partner >= 0) {
        FSDP_TRY(advance_out(cache, all, &one));
        complete = complete && one;
    }
    if (complete && atomic_load_explicit(&cache->sealed, memory_order_acquire)) {
        join(cache);
        cache->under_way = false;
    }
    return FSDP_OK;
}

fsdp_status fsdpi_cache_advance(fsdpi_cache *cache)
{
    if (!cache->under_way) {
        cache->calls += cache->ctx != NULL;
        return FSDP_OK;
    }
    cache->calls++;
    return advance(cache, false);
}

fsdp_status fsdpi_cache_complete(fsdpi_cache *cache)
{
    if (!cache->under_way) {
        return FSDP_OK;
    }
    join(cache);
    FSDP_TRY(advance(cache, true)); /* posts what has not been */
    for (size_t i = 0; i < cache->n_copies && cache->under_way; i++) {
        FSDP_TRY(fsdpi_delivery_wait(&cache->copies[i].delivery));
        take_copy(cache, &cache->copies[i]);
    }
    if (cache->partner >= 0 && cache->under_way) {
        FSDP_TRY(fsdpi_delivery_wait(&cache->out));
    }
    cache->under_way = false;
    return FSDP_OK;
}

/* ---- closing --------------------------------------------------------------------------------------------------------- */

static bool is_used_by_mpi(const fsdpi_cache *cache)
{
    bool used = fsdpi_delivery_is_under_way(&cache->out);

    for (size_t i = 0; i < cache->n_copies; i++) {
        used = used || fsdpi_delivery_is_under_way(&cache->copies[i].delivery);
    }
    return used;
}

static void close_file(fsdpi_cache_file *file, bool keep, bool used)
{
    if (!keep && file->base != NULL) {
        (void)unlink(file->path);
    }
    if (!used) {
        fsdpi_cache_file_close(file);
    }
}

static void close_deliveries(fsdpi_cache *cache)
{
    fsdpi_delivery_close(&cache->out);
    for (size_t i = 0; i < cache->n_copies; i++) {
        fsdpi_delivery_close(&cache->copies[i].delivery);
    }
}

/* Memory that MPI may still write to stays until the process ends. */
void fsdpi_cache_close(fsdpi_cache *cache, bool keep)
{
    fsdp_context *ctx = cache->ctx;

    if (ctx == NULL) {
        return;
    }
    const bool forked = ctx->copy_of != 0;
    keep              = keep && cache->generation > 0;
    const bool used   = !forked && is_used_by_mpi(cache);
    join(cache);
    for (int s = 0; s < FSDPI_CACHE_SLOTS; s++) {
        close_file(&cache->own[s], keep || forked, used);
        for (size_t i = 0; i < cache->n_copies; i++) {
            close_file(&cache->copies[i].slots[s], keep || forked, used);
        }
    }
    if (!keep && !forked && cache->folder[0] != '\0') {
        (void)rmdir(cache->folder); /* by the last rank of the node */
    }
    fsdpi_uncount_memory(ctx, FSDP_MEMORY_STAGING, cache->counted);
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, cache->nodes_memory, fsdpi_nodes_bytes(ctx->size));
    close_deliveries(cache);
    if (!used) {
        fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, cache->copies, cache->n_copies * sizeof(fsdpi_cache_copy));
    }
    if (cache->comm != MPI_COMM_NULL && ctx->broken == FSDP_OK && !forked) {
        (void)MPI_Comm_free(&cache->comm);
    }
    *cache = (fsdpi_cache){.ctx = NULL};
}
