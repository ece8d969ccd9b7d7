#include "shard/pipeline/run/layout.h"

#include <string.h>

#include "lib/device/memory.h"
#include "lib/sync/link.h"

/* One way through all that there is: with `memory` NULL it counts. */
typedef struct piece {
    unsigned char *memory;
    size_t         used;
} piece;

typedef struct drawing {
    fsdp_pipeline             *pipeline;
    const fsdpi_pipeline_plan *plan;
    piece                      held, shown, lists;
    fsdp_status                status;
} drawing;

static void *carve(piece *p, size_t bytes)
{
    void *place = p->memory != NULL ? p->memory + p->used : NULL;

    p->used += fsdpi_shelf_pitch(bytes);
    return place;
}

/* BYTES that stage `stage` puts out for each micro-batch. */
static size_t bytes_out(const fsdpi_pipeline_plan *plan, int stage)
{
    const fsdp_pipeline_options *o = plan->options;

    if (stage + 1 == plan->source->schedule.stages) {
        return o->output_bytes;
    }
    return o->bytes_of != NULL ? o->bytes_of[stage] : o->bytes;
}

static size_t flow_bytes(const fsdpi_pipeline_plan *plan, int stage, int flow)
{
    const bool output = flow == FSDPI_OUTPUTS || flow == FSDPI_OUTPUT_GRADIENTS;

    return output ? bytes_out(plan, stage) : stage > 0 ? bytes_out(plan, stage - 1) : 0;
}

int fsdpi_stages_of_rank(const fsdpi_passes *passes, int rank)
{
    int n = 0;

    for (int s = 0; s < passes->schedule->stages; s++) {
        n += passes->owner[s] == rank;
    }
    return n;
}

/* ---- what is shown ------------------------------------------------------------------------------------------------------ */

/* BYTES of an outbox in the memory that others see. */
static size_t box_bytes(const fsdpi_pipeline_plan *plan, int stage, int flow, int places)
{
    return places == 0 ? 0
                       : fsdpi_notes_bytes(plan->source->schedule.micros) +
                             (size_t)places * fsdpi_shelf_pitch(flow_bytes(plan, stage, flow));
}

/* Where an outbox of any rank begins. */
static size_t box_begin(const fsdpi_pipeline_plan *plan, int buffers, int stage, int flow)
{
    const fsdpi_passes *passes = &plan->source->passes;
    size_t              begin  = 0;

    for (int s = 0; s <= stage; s++) {
        if (passes->owner[s] != passes->owner[stage]) {
            continue;
        }
        const fsdpi_stage_need need = fsdpi_stage_needs(passes, s, buffers);
        for (int f = FSDPI_OUTPUTS; f <= FSDPI_INPUT_GRADIENTS; f++) {
            if (s == stage && f == flow) {
                return begin;
            }
            begin += box_bytes(plan, s, f, need.places[f]);
        }
    }
    return begin;
}

/* ---- shelves and boxes ---------------------------------------------------------------------------------------------------- */

static void draw_shelf(drawing *d, fsdpi_shelf *shelf, piece *from, size_t bytes, int places)
{
    shelf->bytes  = bytes;
    shelf->pitch  = fsdpi_shelf_pitch(bytes);
    shelf->n      = places;
    shelf->memory = carve(from, (size_t)places * shelf->pitch);
    shelf->micro  = carve(&d->lists, (size_t)places * sizeof *shelf->micro);
    for (int i = 0; shelf->micro != NULL && i < places; i++) {
        shelf->micro[i] = -1;
    }
}

static bool is_near(const fsdp_pipeline *pipeline, int peer)
{
    return fsdpi_is_on_node(&pipeline->ctx->nodes, peer);
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

static MPI_Request *draw_requests(drawing *d, int places, int pieces)
{
    const int    n    = places * pieces;
    MPI_Request *list = carve(&d->lists, (size_t)n * sizeof(MPI_Request));

    for (int i = 0; list != NULL && i < n; i++) {
        list[i] = MPI_REQUEST_NULL;
    }
    return list;
}

/* Of what `stage` sends; the same at both ends. */
static int tag_of(const drawing *d, int stage, bool back)
{
    return (2 * stage + (int)back) * d->plan->source->schedule.micros;
}

static void draw_outbox(drawing *d, fsdpi_outbox *box, int stage, int flow, int places)
{
    const fsdpi_passes *passes = &d->plan->source->passes;
    const bool          back   = flow == FSDPI_INPUT_GRADIENTS;

    box->peer = back ? fsdpi_before(passes, stage) : fsdpi_behind(passes, stage);
    if (places == 0) {
        return;
    }
    box->way   = is_near(d->pipeline, box->peer) ? &fsdpi_way_near : &fsdpi_way_far;
    box->notes = carve(&d->shown, fsdpi_notes_bytes(d->plan->source->schedule.micros));
    draw_shelf(d, &box->shelf, &d->shown, flow_bytes(d->plan, stage, flow), places);
    box->sent = carve(&d->lists, (size_t)places * sizeof *box->sent);
    box->tag  = tag_of(d, stage, back);
    if (box->way == &fsdpi_way_far) {
        box->piece    = piece_bytes_of(d->pipeline, box->shelf.bytes);
        box->pieces   = (int)((box->shelf.bytes + box->piece - 1) / box->piece);
        box->requests = draw_requests(d, places, box->pieces);
    }
}

static void find_sender(drawing *d, fsdpi_inbox *box, int stage, bool back)
{
    const int from = back ? stage + 1 : stage - 1, flow = back ? FSDPI_INPUT_GRADIENTS : FSDPI_OUTPUTS;
    void     *seen = NULL;

    if (d->shown.memory == NULL || d->status != FSDP_OK) {
        return;
    }
    d->status = fsdp_buffer_peer(d->pipeline->ctx, d->pipeline->shown, box->peer, &seen);
    if (d->status == FSDP_OK) {
        unsigned char *begin = (unsigned char *)seen + box_begin(d->plan, d->pipeline->buffers, from, flow);
        box->notes           = (fsdpi_sent_note *)(void *)begin;
        box->memory          = begin + fsdpi_notes_bytes(d->plan->source->schedule.micros);
    }
    box->pitch = box->shelf.pitch;
}

/* In the order in which this rank receives them. */
static void draw_order(drawing *d, fsdpi_inbox *box, int stage, bool back)
{
    const fsdpi_actions *row = &d->plan->source->schedule.rows[d->pipeline->ctx->rank];

    box->order = carve(&d->lists, (size_t)d->plan->source->schedule.micros * sizeof *box->order);
    for (size_t i = 0; box->order != NULL && i < row->n; i++) {
        if (row->list[i].stage == stage && row->list[i].work == (back ? FSDPI_RECV_B : FSDPI_RECV_F)) {
            box->order[box->n_order++] = row->list[i].micro;
        }
    }
}

static void draw_inbox(drawing *d, fsdpi_inbox *box, int stage, int flow, int places)
{
    const fsdpi_passes *passes = &d->plan->source->passes;
    const bool          back   = flow == FSDPI_OUTPUT_GRADIENTS;

    box->peer = back ? fsdpi_behind(passes, stage) : fsdpi_before(passes, stage);
    if (box->peer >= 0) {
        box->way = is_near(d->pipeline, box->peer) ? &fsdpi_way_near : &fsdpi_way_far;
    }
    const bool far = box->peer >= 0 && box->way == &fsdpi_way_far;
    const int  all = far ? places + d->pipeline->buffers : places;
    draw_shelf(d, &box->shelf, &d->held, flow_bytes(d->plan, stage, flow), all);
    if (far) {
        box->tag      = tag_of(d, back ? stage + 1 : stage - 1, back);
        box->piece    = piece_bytes_of(d->pipeline, box->shelf.bytes);
        box->pieces   = (int)((box->shelf.bytes + box->piece - 1) / box->piece);
        box->requests = draw_requests(d, all, box->pieces);
        draw_order(d, box, stage, back);
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

static void draw_stage(drawing *d, fsdpi_stage *stage, int number)
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
    draw_shelf(d, &stage->scratch, &d->held, bytes_out(d->plan, number), stage->is_last ? 1 : 0);
}

static void draw_stages(drawing *d)
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

static void draw(drawing *d)
{
    const fsdpi_proven  *source = d->plan->source;
    const fsdpi_actions *row    = &source->schedule.rows[d->pipeline->ctx->rank];
    fsdp_pipeline       *p      = d->pipeline;

    p->owner  = carve(&d->lists, (size_t)source->schedule.stages * sizeof *p->owner);
    p->row    = carve(&d->lists, row->n * sizeof *p->row);
    p->losses = carve(&d->lists, (size_t)source->schedule.micros * sizeof *p->losses);
    p->n_row  = row->n;
    if (d->lists.memory != NULL) {
        memcpy(p->owner, source->passes.owner, (size_t)source->schedule.stages * sizeof *p->owner);
        memcpy(p->row, row->list, row->n * sizeof *p->row);
    }
    draw_stages(d);
}

void fsdpi_pipeline_count(fsdp_pipeline *pipeline, fsdpi_pipeline_plan *plan)
{
    drawing d = {.pipeline = pipeline, .plan = plan};

    draw(&d);
    plan->held  = d.held.used;
    plan->shown = pipeline->ctx->size == 1 ? 0 : fsdpi_alloc_size(d.shown.used > 0 ? d.shown.used : 1);
    plan->lists = d.lists.used;
}

fsdp_status fsdpi_pipeline_lay_out(fsdp_pipeline *pipeline, fsdpi_pipeline_plan *plan)
{
    drawing d = {.pipeline = pipeline,
                 .plan     = plan,
                 .held     = {.memory = pipeline->held},
                 .shown    = {.memory = pipeline->shown},
                 .lists    = {.memory = pipeline->lists}};

    draw(&d);
    return d.status;
}
