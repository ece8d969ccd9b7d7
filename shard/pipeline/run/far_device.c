/*
 * Messages of GPU memory by MPI: between nodes, and within one whose ranks do not reach each other's GPU memory. MPI knows no
 * streams, so a message begins when the host has seen that what was in the stream is done; until then the rank goes on with its row.
 *
 * An MPI that takes GPU memory is given the places themselves. They are received into as soon as nothing in the stream uses them any
 * more. Otherwise messages are staged: copied out to pinned memory, which has a place for each of the outbox, and in from pinned
 * memory, which has one more than `buffers` of them, taken in turn, so that as many arrive ahead as on the host.
 */
#include "shard/pipeline/run/far.h"
#include "shard/pipeline/run/gpu.h"

static void leave(fsdp_pipeline *pipeline, fsdpi_inbox *box, int place)
{
    fsdpi_stream_mark(pipeline, fsdpi_callers_stream(pipeline), box->gpu.left[place]);
}

/* ---- what leaves ----------------------------------------------------------------------------------------------------------- */

static unsigned char *pinned_of(const unsigned char *pinned, const fsdpi_shelf *shelf, int place)
{
    return (unsigned char *)(uintptr_t)pinned + (size_t)place * shelf->pitch;
}

/* Into what MPI will be given; `ready` is behind that. */
static void put_out(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place)
{
    fsdpi_gpu_event ready = box->gpu.ready[place];

    fsdpi_stream_mark(pipeline, fsdpi_callers_stream(pipeline), ready);
    if (pipeline->gpu.staged && !pipeline->spoiled && fsdpi_stream_wait(pipeline, pipeline->gpu.out, ready) &&
        fsdpi_stream_copy(pipeline, pipeline->gpu.out, pinned_of(box->gpu.pinned, &box->shelf, place),
                          fsdpi_shelf_memory(&box->shelf, place), box->shelf.bytes)) {
        fsdpi_stream_mark(pipeline, pipeline->gpu.out, ready);
    }
}

/* The message begins, if it may. */
static fsdp_status begin_if_ready(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place)
{
    if (!pipeline->spoiled && !fsdpi_mark_is_past(pipeline, box->gpu.ready[place])) {
        return FSDP_OK;
    }
    box->gpu.held_up[place] = false;
    return fsdpi_far_send(pipeline, box, place,
                          pipeline->gpu.staged ? pinned_of(box->gpu.pinned, &box->shelf, place)
                                               : fsdpi_shelf_memory(&box->shelf, place),
                          pipeline->spoiled);
}

static fsdp_status send(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place)
{
    box->gpu.held_up[place] = true;
    if (!pipeline->spoiled) {
        put_out(pipeline, box, place);
    }
    return begin_if_ready(pipeline, box, place);
}

static fsdp_status ask(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place, bool *received)
{
    *received = false;
    if (box->gpu.held_up[place]) {
        FSDP_TRY(begin_if_ready(pipeline, box, place));
    }
    return box->gpu.held_up[place] ? FSDP_OK : fsdpi_far_is_sent(pipeline, box, place, received);
}

/* ---- what comes, through pinned memory --------------------------------------------------------------------------------------- */

static fsdp_status expect_staged(fsdp_pipeline *pipeline, fsdpi_inbox *box)
{
    while (box->n_begun < box->n_order && box->n_begun - box->gpu.n_taken < box->gpu.n_pinned) {
        const int slot = box->n_begun % box->gpu.n_pinned;

        if (!fsdpi_mark_is_past(pipeline, box->gpu.taken[slot])) {
            break;
        }
        FSDP_TRY(fsdpi_far_receive(pipeline, box, slot, pinned_of(box->gpu.pinned, &box->shelf, slot),
                                   box->order[box->n_begun]));
        box->n_begun++;
    }
    return FSDP_OK;
}

/* From a pinned place to one of the GPU. */
static void put_in(fsdp_pipeline *pipeline, fsdpi_inbox *box, int slot, int place)
{
    if (fsdpi_stream_wait(pipeline, pipeline->gpu.in, box->gpu.left[place]) &&
        fsdpi_stream_copy(pipeline, pipeline->gpu.in, fsdpi_shelf_memory(&box->shelf, place),
                          pinned_of(box->gpu.pinned, &box->shelf, slot), box->shelf.bytes)) {
        fsdpi_stream_mark(pipeline, pipeline->gpu.in, box->gpu.taken[slot]);
        fsdpi_stream_hand_over(pipeline, box->gpu.taken[slot]);
    }
}

static fsdp_status look_staged(fsdp_pipeline *pipeline, fsdpi_inbox *box, int micro, bool *there, bool *spoiled)
{
    const int slot = box->gpu.n_taken % box->gpu.n_pinned;

    *there = false;
    if (box->n_begun > box->gpu.n_taken) {
        FSDP_TRY(fsdpi_far_look(pipeline, box, slot, there, spoiled));
    }
    if (*there) {
        (void)fsdpi_shelf_take(&box->shelf, micro);
        box->gpu.n_taken++;
    }
    if (*there && !*spoiled) {
        put_in(pipeline, box, slot, fsdpi_shelf_find(&box->shelf, micro));
    }
    return FSDP_OK;
}

/* ---- what comes, into GPU memory ------------------------------------------------------------------------------------------- */

/* A free place that nothing in the stream uses any more; -1. */
static int idle_place(fsdp_pipeline *pipeline, const fsdpi_inbox *box)
{
    for (int i = 0; i < box->shelf.n; i++) {
        if (box->shelf.micro[i] < 0 && fsdpi_mark_is_past(pipeline, box->gpu.left[i])) {
            return i;
        }
    }
    return -1;
}

static fsdp_status expect_direct(fsdp_pipeline *pipeline, fsdpi_inbox *box)
{
    while (box->n_begun < box->n_order) {
        const int place = idle_place(pipeline, box);

        if (place < 0) {
            break;
        }
        box->shelf.micro[place] = box->order[box->n_begun++];
        FSDP_TRY(
            fsdpi_far_receive(pipeline, box, place, fsdpi_shelf_memory(&box->shelf, place), box->shelf.micro[place]));
    }
    return FSDP_OK;
}

static fsdp_status look_direct(fsdp_pipeline *pipeline, fsdpi_inbox *box, int micro, bool *there, bool *spoiled)
{
    const int place = fsdpi_shelf_find(&box->shelf, micro);

    *there = false;
    return place < 0 ? FSDP_OK : fsdpi_far_look(pipeline, box, place, there, spoiled);
}

/* ---- both ---------------------------------------------------------------------------------------------------------------------- */

static fsdp_status expect(fsdp_pipeline *pipeline, fsdpi_inbox *box)
{
    return pipeline->gpu.staged ? expect_staged(pipeline, box) : expect_direct(pipeline, box);
}

static fsdp_status look(fsdp_pipeline *pipeline, fsdpi_inbox *box, int micro, bool *there, bool *spoiled)
{
    return pipeline->gpu.staged ? look_staged(pipeline, box, micro, there, spoiled)
                                : look_direct(pipeline, box, micro, there, spoiled);
}

const fsdpi_way fsdpi_way_far_device = {.send = send, .ask = ask, .expect = expect, .look = look, .leave = leave};
