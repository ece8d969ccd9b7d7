#include "shard/pipeline/run/layout.h"

#include <string.h>

#include "lib/device/memory.h"
#include "lib/sync/link.h"
#include "shard/pipeline/run/drawing.h"
#include "shard/pipeline/run/layout_gpu.h"
#include "shard/pipeline/run/shown.h"

int fsdpi_stages_of_rank(const fsdpi_passes *passes, int rank)
{
    int n = 0;

    for (int s = 0; s < passes->schedule->stages; s++) {
        n += passes->owner[s] == rank;
    }
    return n;
}

/* ---- shelves and boxes ---------------------------------------------------------------------------------------------------- */

static void draw_shelf(fsdpi_drawing *d, fsdpi_shelf *shelf, fsdpi_piece *from, size_t bytes, int places)
{
    shelf->bytes  = bytes;
    shelf->pitch  = fsdpi_shelf_pitch(bytes);
    shelf->n      = places;
    shelf->memory = fsdpi_carve(from, (size_t)places * shelf->pitch);
    shelf->micro  = fsdpi_carve(&d->lists, (size_t)places * sizeof *shelf->micro);
    for (int i = 0; shelf->micro != NULL && i < places; i++) {
        shelf->micro[i] = -1;
    }
}

/*
 * BYTES of the pieces of a message to another node: where the link is a slow one, so short that MPI sends them without asking the
 * receiver first, who computes and would not answer.
 */
static size_t piece_bytes_of(const fsdp_pipeline *pipeline, size_t bytes)
{
    enum { MOST_PIECES = 64 };
    const size_t longest  = (size_t)pipeline->ctx->config.message_bytes;
    const size_t least    = (bytes + MOST_PIECES - 1) / MOST_PIECES;
    const size_t unasked  = fsdpi_link_piece(&pipeline->ctx->link);
    const size_t expected = unasked == 0 ? longest : unasked > least ? unasked : least;

    return expected < longest ? expected : longest;
}

static int pieces_of(const fsdp_pipeline *pipeline, size_t bytes, size_t *piece)
{
    *piece = piece_bytes_of(pipeline, bytes);
    return (int)((bytes + *piece - 1) / *piece);
}

static MPI_Request *draw_requests(fsdpi_drawing *d, int places, int pieces)
{
    const int    n    = places * pieces;
    MPI_Request *list = fsdpi_carve(&d->lists, (size_t)n * sizeof(MPI_Request));

    for (int i = 0; list != NULL && i < n; i++) {
        list[i] = MPI_REQUEST_NULL;
    }
    return list;
}

/* Of what `stage` sends; the same at both ends. */
static int tag_of(const fsdpi_drawing *d, int stage, bool back)
{
    return (2 * stage + (int)back) * d->plan->source->schedule.micros;
}

static const fsdpi_way *way_to(const fsdp_pipeline *pipeline, int peer)
{
    const bool near = fsdpi_is_near(pipeline, peer);

    if (pipeline->gpu.device != NULL) {
        return near ? &fsdpi_way_near_device : &fsdpi_way_far_device;
    }
    return near ? &fsdpi_way_near : &fsdpi_way_far;
}

static void draw_outbox(fsdpi_drawing *d, fsdpi_outbox *box, int stage, int flow, int places)
{
    const fsdpi_passes *passes    = &d->plan->source->passes;
    const bool          back      = flow == FSDPI_INPUT_GRADIENTS;
    const bool          on_device = d->pipeline->gpu.device != NULL;

    box->peer = back ? fsdpi_before(passes, stage) : fsdpi_behind(passes, stage);
    if (places == 0) {
        return;
    }
    box->way   = way_to(d->pipeline, box->peer);
    box->notes = fsdpi_carve(&d->shown, fsdpi_notes_bytes(d->plan->source->schedule.micros));
    draw_shelf(d, &box->shelf, on_device ? &d->offered : &d->shown, fsdpi_flow_bytes(d->plan, stage, flow), places);
    if (on_device) {
        fsdpi_draw_outbox_gpu(d, box, stage, flow);
    }
    box->sent = fsdpi_carve(&d->lists, (size_t)places * sizeof *box->sent);
    box->tag  = tag_of(d, stage, back);
    if (!fsdpi_is_near(d->pipeline, box->peer)) {
        box->pieces   = pieces_of(d->pipeline, box->shelf.bytes, &box->piece);
        box->requests = draw_requests(d, places, box->pieces);
    }
}

/* Where the sender's notes are, and its places. */
static void find_sender(fsdpi_drawing *d, fsdpi_inbox *box, int stage, bool back)
{
    const int      from = back ? stage + 1 : stage - 1, flow = back ? FSDPI_INPUT_GRADIENTS : FSDPI_OUTPUTS;
    fsdp_pipeline *p     = d->pipeline;
    const size_t   begin = fsdpi_shown_begin(p, d->plan, from, flow);
    void          *shown = NULL, *offered = NULL;

    box->pitch = box->shelf.pitch;
    if (d->shown.memory == NULL || d->status != FSDP_OK) {
        return;
    }
    d->status = fsdp_buffer_peer(p->ctx, p->shown, box->peer, &shown);
    if (d->status == FSDP_OK && p->gpu.device != NULL) {
        d->status = fsdp_buffer_peer(p->ctx, p->gpu.offered, box->peer, &offered);
    }
    if (d->status == FSDP_OK) {
        box->notes  = (fsdpi_sent_note *)(void *)((unsigned char *)shown + begin);
        box->memory = offered != NULL
                          ? (unsigned char *)offered + fsdpi_offered_begin(p, d->plan, from, flow)
                          : (unsigned char *)shown + begin + fsdpi_notes_bytes(d->plan->source->schedule.micros);
    }
}

/* In the order in which this rank receives them. */
static void draw_order(fsdpi_drawing *d, fsdpi_inbox *box, int stage, bool back)
{
    const fsdpi_actions *row = &d->plan->source->schedule.rows[d->pipeline->ctx->rank];

    box->order = fsdpi_carve(&d->lists, (size_t)d->plan->source->schedule.micros * sizeof *box->order);
    for (size_t i = 0; box->order != NULL && i < row->n; i++) {
        if (row->list[i].stage == stage && row->list[i].work == (back ? FSDPI_RECV_B : FSDPI_RECV_F)) {
            box->order[box->n_order++] = row->list[i].micro;
        }
    }
}

/* Messages that come by MPI arrive ahead: in places of their own, or in pinned memory. */
static void draw_far_inbox(fsdpi_drawing *d, fsdpi_inbox *box, int stage, bool back)
{
    const int n = box->gpu.n_pinned > 0 ? box->gpu.n_pinned : box->shelf.n;

    box->tag      = tag_of(d, back ? stage + 1 : stage - 1, back);
    box->pieces   = pieces_of(d->pipeline, box->shelf.bytes, &box->piece);
    box->requests = draw_requests(d, n, box->pieces);
    draw_order(d, box, stage, back);
}

static void draw_inbox(fsdpi_drawing *d, fsdpi_inbox *box, int stage, int flow, int places)
{
    const fsdpi_passes *passes = &d->plan->source->passes;
    const bool          back = flow == FSDPI_OUTPUT_GRADIENTS, on_device = d->pipeline->gpu.device != NULL;

    box->peer = back ? fsdpi_behind(passes, stage) : fsdpi_before(passes, stage);
    if (box->peer >= 0) {
        box->way = way_to(d->pipeline, box->peer);
    }
    const bool far    = box->peer >= 0 && !fsdpi_is_near(d->pipeline, box->peer);
    const bool staged = on_device && d->pipeline->gpu.staged;
    draw_shelf(d, &box->shelf, &d->held, fsdpi_flow_bytes(d->plan, stage, flow),
               far && !staged ? places + d->pipeline->buffers : places);
    if (on_device && box->peer >= 0) {
        fsdpi_draw_inbox_gpu(d, box, stage, flow);
    }
    if (far) {
        draw_far_inbox(d, box, stage, back);
    } else if (box->peer >= 0) {
        find_sender(d, box, stage, back);
    }
}

/* ---- all ---------------------------------------------------------------------------------------------------------------- */

static int count_passes(const fsdpi_actions *row, int stage)
{
    int n = 0;

    for (size_t i = 0; i < row->n; i++) {
        n += row->list[i].stage == stage &&
             (row->list[i].work == FSDPI_RUN_BACKWARD || row->list[i].work == FSDPI_RUN_BACKWARD_WEIGHT);
    }
    return n;
}

static void draw_stage(fsdpi_drawing *d, fsdpi_stage *stage, int number)
{
    const fsdpi_proven    *source = d->plan->source;
    const fsdpi_stage_need need   = fsdpi_stage_needs(&source->passes, number, d->pipeline->buffers);

    *stage = (fsdpi_stage){.number   = number,
                           .is_first = number == 0,
                           .is_last  = number + 1 == source->schedule.stages,
                           .n_passes = count_passes(&source->schedule.rows[d->pipeline->ctx->rank], number)};
    draw_outbox(d, &stage->outputs, number, FSDPI_OUTPUTS, need.places[FSDPI_OUTPUTS]);
    draw_outbox(d, &stage->input_gradients, number, FSDPI_INPUT_GRADIENTS, need.places[FSDPI_INPUT_GRADIENTS]);
    draw_inbox(d, &stage->inputs, number, FSDPI_INPUTS, need.places[FSDPI_INPUTS]);
    draw_inbox(d, &stage->output_gradients, number, FSDPI_OUTPUT_GRADIENTS, need.places[FSDPI_OUTPUT_GRADIENTS]);
    draw_shelf(d, &stage->scratch, &d->held, fsdpi_flow_bytes(d->plan, number, FSDPI_OUTPUTS), stage->is_last ? 1 : 0);
}

static void draw_stages(fsdpi_drawing *d)
{
    const fsdpi_passes *passes = &d->plan->source->passes;
    int                 n      = 0;

    for (int s = 0; s < passes->schedule->stages; s++) {
        if (passes->owner[s] == d->pipeline->ctx->rank) {
            draw_stage(d, &d->pipeline->stages[n++], s);
        }
    }
    for (int i = 0; i + 1 < n; i++) {
        fsdpi_stage *one = &d->pipeline->stages[i], *next = one + 1;

        if (one->number + 1 == next->number) {
            one->behind  = next;
            next->before = one;
        }
    }
}

static void draw(fsdpi_drawing *d)
{
    const fsdpi_proven  *source = d->plan->source;
    const fsdpi_actions *row    = &source->schedule.rows[d->pipeline->ctx->rank];
    fsdp_pipeline       *p      = d->pipeline;

    p->owner  = fsdpi_carve(&d->lists, (size_t)source->schedule.stages * sizeof *p->owner);
    p->row    = fsdpi_carve(&d->lists, row->n * sizeof *p->row);
    p->losses = fsdpi_carve(&d->lists, (size_t)source->schedule.micros * sizeof *p->losses);
    p->n_row  = row->n;
    if (d->lists.memory != NULL) {
        memcpy(p->owner, source->passes.owner, (size_t)source->schedule.stages * sizeof *p->owner);
        memcpy(p->row, row->list, row->n * sizeof *p->row);
    }
    draw_stages(d);
}

/* Memory that all ranks allocate together is never of 0 BYTES, so that each has an address of it. */
static size_t together(const fsdp_pipeline *pipeline, size_t used)
{
    return pipeline->ctx->size == 1 ? 0 : fsdpi_alloc_size(used > 0 ? used : 1);
}

void fsdpi_pipeline_count(fsdp_pipeline *pipeline, fsdpi_pipeline_plan *plan)
{
    fsdpi_drawing d = {.pipeline = pipeline, .plan = plan};

    draw(&d);
    plan->held    = d.held.used;
    plan->shown   = together(pipeline, d.shown.used);
    plan->offered = pipeline->gpu.device != NULL ? together(pipeline, d.offered.used) : 0;
    plan->pinned  = fsdpi_alloc_size(d.pinned.used);
    plan->lists   = d.lists.used;
}

fsdp_status fsdpi_pipeline_lay_out(fsdp_pipeline *pipeline, fsdpi_pipeline_plan *plan)
{
    fsdpi_drawing d = {.pipeline = pipeline,
                       .plan     = plan,
                       .held     = {.memory = pipeline->held},
                       .shown    = {.memory = pipeline->shown},
                       .offered  = {.memory = pipeline->gpu.offered},
                       .pinned   = {.memory = pipeline->gpu.pinned},
                       .lists    = {.memory = pipeline->lists}};

    draw(&d);
    return d.status;
}
