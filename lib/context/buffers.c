#include "lib/context/buffers.h"

static bool holds(const fsdpi_buffer *buffer, const void *memory, size_t bytes)
{
    const uintptr_t begin = (uintptr_t)buffer->base, at = (uintptr_t)memory;

    return at >= begin && at - begin < buffer->bytes && bytes <= buffer->bytes - (at - begin);
}

/* Under the lock. */
static fsdpi_buffer *first_that_holds(fsdpi_buffer *first, const void *memory, size_t bytes)
{
    while (first != NULL && !holds(first, memory, bytes)) {
        first = first->next;
    }
    return first;
}

fsdpi_buffer_part fsdpi_buffer_part_of(const fsdpi_buffer *buffer, int position)
{
    if (buffer->kind == FSDP_BUFFER_DEVICE) {
        return buffer->parts[position];
    }
    if (buffer->places == NULL) {
        return (fsdpi_buffer_part){buffer->base, buffer->bytes};
    }
    return (fsdpi_buffer_part){buffer->segment.base + buffer->places[position].begin, buffer->places[position].bytes};
}

/* Programs that have none need not wait for the lock. */
fsdpi_buffer *fsdpi_buffer_of(fsdpi_buffers *buffers, const void *memory, size_t bytes)
{
    if (atomic_load_explicit(&buffers->live, memory_order_relaxed) == NULL &&
        atomic_load_explicit(&buffers->freed, memory_order_relaxed) == NULL) {
        return NULL;
    }
    fsdpi_lock_take(&buffers->lock);
    fsdpi_buffer *found = first_that_holds(buffers->live, memory, bytes);
    if (found == NULL) {
        found = first_that_holds(buffers->freed, memory, bytes);
    }
    fsdpi_lock_give(&buffers->lock);
    return found;
}

fsdpi_buffer *fsdpi_buffer_beginning_at(fsdpi_buffers *buffers, const void *memory)
{
    fsdpi_lock_take(&buffers->lock);
    fsdpi_buffer *buffer = buffers->live;
    while (buffer != NULL && (memory == NULL || buffer->base != memory)) {
        buffer = buffer->next;
    }
    fsdpi_lock_give(&buffers->lock);
    return buffer;
}

fsdpi_buffer *fsdpi_buffer_numbered(fsdpi_buffers *buffers, uint32_t number)
{
    fsdpi_lock_take(&buffers->lock);
    fsdpi_buffer *buffer = buffers->live;
    while (buffer != NULL && buffer->number != number) {
        buffer = buffer->next;
    }
    fsdpi_lock_give(&buffers->lock);
    return buffer;
}

unsigned char *fsdpi_buffer_at(fsdpi_buffers *buffers, uint32_t number, int position, uint64_t offset)
{
    return fsdpi_buffer_part_of(fsdpi_buffer_numbered(buffers, number), position).base + offset;
}

void fsdpi_buffer_enter(fsdpi_buffers *buffers, fsdpi_buffer *buffer)
{
    fsdpi_lock_take(&buffers->lock);
    buffer->next  = buffers->live;
    buffers->live = buffer;
    buffers->n_per_node += buffer->kind == FSDP_BUFFER_PER_NODE;
    fsdpi_lock_give(&buffers->lock);
}

void fsdpi_buffer_leave(fsdpi_buffers *buffers, const fsdpi_buffer *buffer)
{
    fsdpi_buffer *before = NULL;

    fsdpi_lock_take(&buffers->lock);
    for (fsdpi_buffer *one = buffers->live; one != buffer; one = one->next) {
        before = one;
    }
    if (before != NULL) {
        before->next = buffer->next;
    } else {
        buffers->live = buffer->next;
    }
    buffers->n_per_node -= buffer->kind == FSDP_BUFFER_PER_NODE;
    fsdpi_lock_give(&buffers->lock);
}

void fsdpi_buffer_bury(fsdpi_buffers *buffers, fsdpi_buffer *buffer)
{
    fsdpi_lock_take(&buffers->lock);
    buffer->freed  = true;
    buffer->next   = buffers->freed;
    buffers->freed = buffer;
    buffers->n_freed++;
    fsdpi_lock_give(&buffers->lock);
}

fsdpi_buffer *fsdpi_buffer_oldest(fsdpi_buffers *buffers, size_t most)
{
    fsdpi_buffer *before = NULL, *oldest = NULL;

    fsdpi_lock_take(&buffers->lock);
    if (buffers->n_freed > most) {
        for (oldest = buffers->freed; oldest->next != NULL; oldest = oldest->next) {
            before = oldest;
        }
        if (before != NULL) {
            before->next = NULL;
        } else {
            buffers->freed = NULL;
        }
        buffers->n_freed--;
    }
    fsdpi_lock_give(&buffers->lock);
    return oldest;
}
