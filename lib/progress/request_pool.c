/*
 * Requests come in blocks: ordinary ones, which are never given back before the queue is closed, and reserved ones, for what is
 * issued by somebody who knows how many operations that are at most. Those that have been ended are used again.
 */
#include "lib/device/memory.h"
#include "lib/progress/queue.h"
#include "lib/progress/queue_inside.h"

enum { REQUESTS_AT_A_TIME = 32 };

/* A block of requests that are allocated together. */
struct fsdpi_request_block {
    fsdpi_request_block *next;
    size_t               n;
    fsdp_request         requests[];
};

static size_t block_bytes(size_t n)
{
    return n > 0 ? sizeof(fsdpi_request_block) + n * sizeof(fsdp_request) : 0;
}

/*
 * Behind the others, since its caller may end it a second time. A blocking call's, which nobody has seen, goes before them: caches
 * still hold it.
 */
void fsdpi_request_put(fsdpi_queue *queue, fsdp_request *request)
{
    fsdpi_request_pool *pool = request->is_reserved ? &queue->reserved : &queue->ordinary;

    atomic_store_explicit(&request->state, FSDPI_REQUEST_FREE, memory_order_relaxed);
    request->next = request->is_blocking ? pool->free_head : NULL;
    if (pool->free_head == NULL || request->is_blocking) {
        pool->free_head = request;
    } else {
        pool->free_tail->next = request;
    }
    if (request->next == NULL) {
        pool->free_tail = request;
    }
    pool->n_free++;
}

static fsdp_request *take_from(fsdpi_request_pool *pool)
{
    fsdp_request *request = pool->free_head;

    pool->free_head = request->next;
    pool->free_tail = pool->free_head != NULL ? pool->free_tail : NULL;
    pool->n_free--;
    return request;
}

static fsdp_status make(fsdpi_queue *queue, fsdpi_request_pool *pool, size_t n)
{
    fsdpi_request_block *block = fsdpi_alloc(queue->engine.core->ctx, FSDP_MEMORY_BOOKKEEPING, block_bytes(n));

    if (block == NULL) {
        return FSDP_ERR_MEMORY;
    }
    block->next  = pool->blocks;
    block->n     = n;
    pool->blocks = block;
    for (size_t i = 0; i < n; i++) {
        block->requests[i].ctx         = queue->engine.core->ctx;
        block->requests[i].queue       = queue;
        block->requests[i].engine      = &queue->engine;
        block->requests[i].is_reserved = pool == &queue->reserved;
        fsdpi_request_put(queue, &block->requests[i]);
    }
    pool->n_made += n;
    return FSDP_OK;
}

fsdp_status fsdpi_requests_make(fsdpi_queue *queue)
{
    return make(queue, &queue->ordinary, REQUESTS_AT_A_TIME);
}

/* Some free ordinary requests are kept back, so that one just ended is not in use again when it is ended a second time. */
fsdp_request *fsdpi_request_take(fsdpi_queue *queue, bool reserved)
{
    fsdpi_request_pool *ordinary = &queue->ordinary;

    if (reserved && queue->reserved.n_free > 0) {
        return take_from(&queue->reserved);
    }
    if (ordinary->n_free < REQUESTS_AT_A_TIME / 2 && fsdpi_requests_make(queue) != FSDP_OK && ordinary->n_free == 0) {
        return NULL;
    }
    return take_from(ordinary);
}

size_t fsdpi_requests_bookkeeping(void)
{
    return fsdpi_alloc_size(block_bytes(REQUESTS_AT_A_TIME));
}

size_t fsdpi_queue_reserve_bookkeeping(size_t n)
{
    return fsdpi_alloc_size(block_bytes(n));
}

fsdp_status fsdpi_queue_reserve(fsdpi_queue *queue, size_t n)
{
    fsdpi_queue_lock(queue);
    const fsdp_status status = n > 0 ? make(queue, &queue->reserved, n) : FSDP_OK;
    queue->n_reserved += status == FSDP_OK ? n : 0;
    fsdpi_queue_unlock(queue);
    return status;
}

/* Whatever memory it has served last. */
static void release(const fsdpi_queue *queue, fsdp_request *request)
{
    if (queue->device_ops != NULL && queue->device_ops->release != NULL) {
        queue->device_ops->release(request);
    }
}

static void release_block(const fsdpi_queue *queue, fsdpi_request_block *block)
{
    for (size_t i = 0; i < block->n; i++) {
        release(queue, &block->requests[i]);
    }
    fsdpi_free(queue->engine.core->ctx, FSDP_MEMORY_BOOKKEEPING, block, block_bytes(block->n));
}

static bool is_unused(const fsdpi_request_block *block)
{
    for (size_t i = 0; i < block->n; i++) {
        if (fsdpi_state_of(&block->requests[i]) != FSDPI_REQUEST_FREE) {
            return false;
        }
    }
    return true;
}

static bool is_in(const fsdpi_request_block *block, const fsdp_request *request)
{
    return request >= block->requests && request < block->requests + block->n;
}

/* Takes a block's requests, all of them free, out of the pool. */
static void withdraw(fsdpi_request_pool *pool, const fsdpi_request_block *block)
{
    fsdp_request **link = &pool->free_head;

    pool->free_tail = NULL;
    while (*link != NULL) {
        if (is_in(block, *link)) {
            *link = (*link)->next;
        } else {
            pool->free_tail = *link;
            link            = &(*link)->next;
        }
    }
    pool->n_free -= block->n;
    pool->n_made -= block->n;
}

/* Requests of others who have reserved some may be in any block: what cannot be given back now can with theirs. */
void fsdpi_queue_unreserve(fsdpi_queue *queue, size_t n)
{
    fsdpi_request_pool   *pool = &queue->reserved;
    fsdpi_request_block **link = &pool->blocks;

    if (queue->engine.core->copy_of != 0) { /* whoever had the lock is not here */
        return;
    }
    fsdpi_queue_lock(queue);
    queue->n_reserved -= n;
    while (*link != NULL) {
        fsdpi_request_block *block = *link;

        if (pool->n_made - queue->n_reserved >= block->n && is_unused(block)) {
            withdraw(pool, block);
            *link = block->next;
            release_block(queue, block);
        } else {
            link = &block->next;
        }
    }
    fsdpi_queue_unlock(queue);
}

static void release_pool(const fsdpi_queue *queue, fsdpi_request_pool *pool)
{
    while (pool->blocks != NULL) {
        fsdpi_request_block *block = pool->blocks;

        pool->blocks = block->next;
        release_block(queue, block);
    }
}

void fsdpi_requests_release(fsdpi_queue *queue)
{
    release_pool(queue, &queue->ordinary);
    release_pool(queue, &queue->reserved);
}
