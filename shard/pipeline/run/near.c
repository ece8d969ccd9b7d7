/*
 * Messages within a node: the sender notes where it has put what the receiver then copies, and the receiver notes that it has. One
 * copy, no system call. The notes of a step are numbers of it, so that nothing needs to be cleared between steps.
 */
#include <string.h>

#include "shard/pipeline/run/pipeline.h"

static fsdp_status send(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place)
{
    fsdpi_sent_note *note = &box->notes[box->shelf.micro[place]];

    note->place   = (uint32_t)place;
    note->spoiled = pipeline->spoiled;
    atomic_store_explicit(&note->sent, pipeline->step, memory_order_release);
    return FSDP_OK;
}

static fsdp_status ask(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place, bool *received)
{
    const fsdpi_sent_note *note = &box->notes[box->shelf.micro[place]];

    *received = atomic_load_explicit(&note->taken, memory_order_acquire) == pipeline->step;
    return FSDP_OK;
}

static fsdp_status expect(fsdp_pipeline *pipeline, fsdpi_inbox *box)
{
    (void)pipeline;
    (void)box;
    return FSDP_OK;
}

static fsdp_status look(fsdp_pipeline *pipeline, fsdpi_inbox *box, int micro, bool *there, bool *spoiled)
{
    fsdpi_sent_note *note = &box->notes[micro];

    *there = atomic_load_explicit(&note->sent, memory_order_acquire) == pipeline->step;
    if (!*there) {
        return FSDP_OK;
    }
    unsigned char *memory = fsdpi_shelf_take(&box->shelf, micro);
    *spoiled              = *spoiled || note->spoiled != 0;
    if (!*spoiled) {
        memcpy(memory, box->memory + note->place * box->pitch, box->shelf.bytes);
    }
    atomic_store_explicit(&note->taken, pipeline->step, memory_order_release);
    return FSDP_OK;
}

const fsdpi_way fsdpi_way_near = {.send = send, .ask = ask, .expect = expect, .look = look};
