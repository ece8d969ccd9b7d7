/*
 * Messages within a node, between GPUs: the receiver copies out of the sender's GPU memory, in a stream of its own, behind what the
 * sender has put into its stream until it sent, and behind the last use of the place here. Hosts wait for each other's calls alone.
 * Two events for each of the sender's places, each recorded before the other host is told: `ready` by the sender, and `taken` by the
 * receiver, for which the sender waits before it puts something else there. A place is not sent again before it has been taken, so
 * nobody waits for a newer record than the one that is meant.
 */
#include "shard/pipeline/run/gpu.h"
#include "shard/pipeline/run/near.h"

static fsdp_status send(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place)
{
    if (!pipeline->spoiled) {
        fsdpi_stream_mark(pipeline, fsdpi_callers_stream(pipeline), box->gpu.ready[place]);
    }
    fsdpi_near_say_sent(pipeline, box, place);
    return FSDP_OK;
}

static fsdp_status ask(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place, bool *received)
{
    *received               = fsdpi_near_is_taken(pipeline, box, place);
    box->gpu.held_up[place] = box->gpu.held_up[place] || *received;
    return FSDP_OK;
}

static void open(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place)
{
    if (box->gpu.held_up[place]) {
        box->gpu.held_up[place] = !fsdpi_stream_wait(pipeline, fsdpi_callers_stream(pipeline), box->gpu.taken[place]);
    }
}

static void leave(fsdp_pipeline *pipeline, fsdpi_inbox *box, int place)
{
    fsdpi_stream_mark(pipeline, fsdpi_callers_stream(pipeline), box->gpu.left[place]);
}

/* From a place of the sender to one of this rank. */
static void fetch(fsdp_pipeline *pipeline, fsdpi_inbox *box, size_t from, int place)
{
    if (fsdpi_stream_wait(pipeline, pipeline->gpu.in, box->gpu.ready[from]) &&
        fsdpi_stream_wait(pipeline, pipeline->gpu.in, box->gpu.left[place]) &&
        fsdpi_stream_copy(pipeline, pipeline->gpu.in, fsdpi_shelf_memory(&box->shelf, place),
                          box->memory + from * box->pitch, box->shelf.bytes)) {
        fsdpi_stream_mark(pipeline, pipeline->gpu.in, box->gpu.taken[from]);
        fsdpi_stream_hand_over(pipeline, box->gpu.taken[from]);
    }
}

static fsdp_status look(fsdp_pipeline *pipeline, fsdpi_inbox *box, int micro, bool *there, bool *spoiled)
{
    fsdpi_sent_note *note = fsdpi_near_find(pipeline, box, micro);

    *there = note != NULL;
    if (note == NULL) {
        return FSDP_OK;
    }
    (void)fsdpi_shelf_take(&box->shelf, micro);
    *spoiled = *spoiled || note->spoiled != 0;
    if (!*spoiled) {
        fetch(pipeline, box, note->place, fsdpi_shelf_find(&box->shelf, micro));
    }
    fsdpi_near_say_taken(pipeline, note);
    return FSDP_OK;
}

const fsdpi_way fsdpi_way_near_device = {
    .send = send, .ask = ask, .expect = fsdpi_near_expect, .look = look, .open = open, .leave = leave};
