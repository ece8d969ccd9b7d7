#include "shard/pipeline/run/layout_gpu.h"

#include "shard/pipeline/run/shown.h"

static fsdpi_gpu_event *draw_events(fsdpi_drawing *d, int n)
{
    return fsdpi_carve(&d->lists, (size_t)n * sizeof(fsdpi_gpu_event));
}

/* Handles of this rank's events, in what it shows. */
static fsdpi_gpu_handle *draw_handles(fsdpi_drawing *d, int n)
{
    return fsdpi_carve(&d->shown, (size_t)n * sizeof(fsdpi_gpu_handle));
}

/* What a peer shows of a box, `skip` BYTES into it; NULL while it is counted. */
static void *seen(fsdpi_drawing *d, int peer, int stage, int flow, size_t skip)
{
    void *base = NULL;

    if (d->shown.memory == NULL || d->status != FSDP_OK) {
        return NULL;
    }
    d->status = fsdp_buffer_peer(d->pipeline->ctx, d->pipeline->shown, peer, &base);
    return base == NULL ? NULL : (unsigned char *)base + fsdpi_shown_begin(d->pipeline, d->plan, stage, flow) + skip;
}

void fsdpi_draw_outbox_gpu(fsdpi_drawing *d, fsdpi_outbox *box, int stage, int flow)
{
    const bool back = flow == FSDPI_INPUT_GRADIENTS;
    const int  n    = box->shelf.n;

    box->gpu.ready   = draw_events(d, n);
    box->gpu.held_up = fsdpi_carve(&d->lists, (size_t)n * sizeof *box->gpu.held_up);
    if (fsdpi_is_near(d->pipeline, box->peer)) {
        box->gpu.taken = draw_events(d, n);
        box->gpu.own   = draw_handles(d, n);
        box->gpu.peers =
            seen(d, box->peer, back ? stage - 1 : stage + 1, back ? FSDPI_OUTPUT_GRADIENTS : FSDPI_INPUTS, 0);
        return;
    }
    d->pipeline->gpu.follows = true;
    if (d->pipeline->gpu.staged) {
        box->gpu.pinned = fsdpi_carve(&d->pinned, (size_t)n * box->shelf.pitch);
    }
}

/* One is copied to the GPU while `buffers` more arrive. */
static int staging_places(const fsdp_pipeline *pipeline, const fsdpi_pipeline_plan *plan)
{
    const int micros = plan->source->schedule.micros;

    return pipeline->buffers < micros ? pipeline->buffers + 1 : micros;
}

void fsdpi_draw_inbox_gpu(fsdpi_drawing *d, fsdpi_inbox *box, int stage, int flow)
{
    const bool   back  = flow == FSDPI_OUTPUT_GRADIENTS;
    const size_t notes = fsdpi_notes_bytes(d->plan->source->schedule.micros);

    box->gpu.left = draw_events(d, box->shelf.n);
    if (fsdpi_is_near(d->pipeline, box->peer)) {
        box->gpu.n_peer = fsdpi_senders_places(d->pipeline, d->plan, stage, flow);
        box->gpu.ready  = draw_events(d, box->gpu.n_peer);
        box->gpu.taken  = draw_events(d, box->gpu.n_peer);
        box->gpu.own    = draw_handles(d, box->gpu.n_peer);
        box->gpu.peers =
            seen(d, box->peer, back ? stage + 1 : stage - 1, back ? FSDPI_INPUT_GRADIENTS : FSDPI_OUTPUTS, notes);
        return;
    }
    d->pipeline->gpu.follows = true;
    if (d->pipeline->gpu.staged) {
        box->gpu.n_pinned = staging_places(d->pipeline, d->plan);
        box->gpu.taken    = draw_events(d, box->gpu.n_pinned);
        box->gpu.pinned   = fsdpi_carve(&d->pinned, (size_t)box->gpu.n_pinned * box->shelf.pitch);
    }
}
