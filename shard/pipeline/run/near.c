/*
 * Messages within a node: the sender notes where it has put what the receiver then copies, and the receiver notes that it has. One
 * copy, no system call.
 */
#include "shard/pipeline/run/near.h"

#include <string.h>

static fsdp_status send(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place)
{
    fsdpi_near_say_sent(pipeline, box, place);
    return FSDP_OK;
}

static fsdp_status ask(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place, bool *received)
{
    *received = fsdpi_near_is_taken(pipeline, box, place);
    return FSDP_OK;
}

static fsdp_status look(fsdp_pipeline *pipeline, fsdpi_inbox *box, int micro, bool *there, bool *spoiled)
{
    fsdpi_sent_note *note = fsdpi_near_find(pipeline, box, micro);

    *there = note != NULL;
    if (note == NULL) {
        return FSDP_OK;
    }
    unsigned char *memory = fsdpi_shelf_take(&box->shelf, micro);
    *spoiled              = *spoiled || note->spoiled != 0;
    if (!*spoiled) {
        memcpy(memory, box->memory + note->place * box->pitch, box->shelf.bytes);
    }
    fsdpi_near_say_taken(pipeline, note);
    return FSDP_OK;
}

const fsdpi_way fsdpi_way_near = {.send = send, .ask = ask, .expect = fsdpi_near_expect, .look = look};
