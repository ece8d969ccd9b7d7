/*
 * Requests come in blocks, which are never given back before the queue is closed; those that have been ended are used again.
 */
#include "lib/device/memory.h"
#include "lib/progress/queue_inside.h"

enum { REQUESTS_AT_A_TIME = 32 };

/* A block of requests that are allocated together. */
typedef struct request_block {
    struct request_block *next;
    fsdp_request          requests[REQUESTS_AT_A_TIME];
} request_block;

void fsdpi_request_put(fsdpi_queue *queue, fsdp_request *request)
{
    atomic_store_explicit(&request->state, FSDPI_REQUEST_FREE, memory_order_relaxed);
    request->next = NULL;
    if (queue->free_tail != NULL) {
        queue->free_tail->next = request;
    } else {
        queue->free_head = request;
    }
    queue->free_tail = request;
    queue->n_free++;
}

fsdp_status fsdpi_requests_make(fsdpi_queue *queue)
{
    request_block *block = fsdpi_alloc(queue->engine.core->ctx, FSDP_MEMORY_BOOKKEEPING, sizeof *block);

    if (block == NULL) {
        return FSDP_ERR_MEMORY;
    }
    block->next   = queue->blocks;
    queue->blocks = block;
    for (size_t i = 0; i < REQUESTS_AT_A_TIME; i++) {
        block->requests[i].ctx    = queue->engine.core->ctx;
        block->requests[i].queue  = queue;
        block->requests[i].engine = &queue->engine;
        fsdpi_request_put(queue, &block->requests[i]);
    }
    queue->n_made += REQUESTS_AT_A_TIME;
    return FSDP_OK;
}

/* Some free requests are kept back, so that one just ended is not in use again when it is ended a second time. */
fsdp_request *fsdpi_request_take(fsdpi_queue *queue)
{
    if (queue->n_free < REQUESTS_AT_A_TIME / 2 && fsdpi_requests_make(queue) != FSDP_OK && queue->n_free == 0) {
        return NULL;
    }
    fsdp_request *request = queue->free_head;
    queue->free_head      = request->next;
    queue->free_tail      = queue->free_head != NULL ? queue->free_tail : NULL;
    queue->n_free--;
    return request;
}

size_t fsdpi_requests_bookkeeping(void)
{
    return fsdpi_alloc_size(sizeof(request_block));
}

/* Whatever memory it has served last. */
static void release(const fsdpi_queue *queue, fsdp_request *request)
{
    if (queue->device_ops != NULL && queue->device_ops->release != NULL) {
        queue->device_ops->release(request);
    }
}

void fsdpi_requests_release(fsdpi_queue *queue)
{
    while (queue->blocks != NULL) {
        request_block *block = queue->blocks;

        for (size_t i = 0; i < REQUESTS_AT_A_TIME; i++) {
            release(queue, &block->requests[i]);
        }
        queue->blocks = block->next;
        fsdpi_free(queue->engine.core->ctx, FSDP_MEMORY_BOOKKEEPING, block, sizeof *block);
    }
}
