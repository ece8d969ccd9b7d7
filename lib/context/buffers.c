#include "lib/context/buffers.h"

static bool holds(const fsdpi_buffer *buffer, const void *memory, size_t bytes)
{
    const uintptr_t begin = (uintptr_t)buffer->base, at = (uintptr_t)memory;

    return at >= begin && at - begin < buffer->bytes && bytes <= buffer->bytes - (at - begin);
}

fsdpi_buffer *fsdpi_buffer_of(const fsdpi_buffers *buffers, const void *memory, size_t bytes)
{
    for (fsdpi_buffer *buffer = buffers->live; buffer != NULL; buffer = buffer->next) {
        if (holds(buffer, memory, bytes)) {
            return buffer;
        }
    }
    for (fsdpi_buffer *buffer = buffers->freed; buffer != NULL; buffer = buffer->next) {
        if (holds(buffer, memory, bytes)) {
            return buffer;
        }
    }
    return NULL;
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

unsigned char *fsdpi_buffer_at(const fsdpi_buffers *buffers, uint32_t number, int position, uint64_t offset)
{
    const fsdpi_buffer *buffer = buffers->live;

    while (buffer->number != number) {
        buffer = buffer->next;
    }
    return fsdpi_buffer_part_of(buffer, position).base + offset;
}
