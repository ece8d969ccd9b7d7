/*
 * A step: this rank's row, action by action. What fails is noted, and from there on nothing is computed, here or where it is heard
 * of, but all messages are still sent and received, so that no rank waits for one that has given up.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "collectives/collectives.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "shard/pipeline/run/gpu.h"
#include "shard/pipeline/run/pipeline.h"
#include "shard/pipeline/run/units.h"
#include "shard/pipeline/run/wait.h"

/* ---- failing ------------------------------------------------------------------------------------------------------------ */

void fsdpi_pipeline_spoil(fsdp_pipeline *p, fsdp_status status, const char *format, ...)
{
    va_list arguments;

    p->spoiled = true;
    if (p->status != FSDP_OK) {
        return;
    }
    p->status = status;
    va_start(arguments, format);
    (void)vsnprintf(p->text, sizeof p->text, format, arguments);
    va_end(arguments);
}

/* What a callback has returned. */
static bool accept(fsdp_pipeline *p, fsdp_status status, const char *callback, const fsdpi_action *a)
{
    const bool known = strcmp(fsdp_status_name(status), "FSDP_UNKNOWN") != 0;

    if (status != FSDP_OK) {
        fsdpi_pipeline_spoil(p, known ? status : FSDP_ERR_STATE,
                             "%s: the callback `%s` returned %d (%s) in stage %d with micro-batch %d", p->name,
                             callback, (int)status, fsdp_status_name(status), a->stage, a->micro);
    }
    return status == FSDP_OK;
}

/* What the passes of a stage's units have returned. */
static bool accept_pass(fsdp_pipeline *p, const fsdpi_stage *stage, fsdp_status status)
{
    if (status != FSDP_OK) {
        fsdpi_pipeline_spoil(p, status, "%s", fsdpi_stage_error(stage));
    }
    return status == FSDP_OK;
}

/* ---- messages ----------------------------------------------------------------------------------------------------------- */

/* Frees the places of what has been received. */
static fsdp_status tidy(fsdp_pipeline *p, fsdpi_outbox *box)
{
    for (int i = 0; i < box->shelf.n && box->under_way > 0; i++) {
        bool received = false;

        if (!box->sent[i]) {
            continue;
        }
        FSDP_TRY(box->way->ask(p, box, i, &received));
        if (received) {
            box->sent[i]        = false;
            box->shelf.micro[i] = -1;
            box->under_way--;
        }
    }
    return FSDP_OK;
}

/* Gradients come in steps alone. */
static fsdp_status expect(fsdp_pipeline *p, fsdpi_inbox *box, bool gradients)
{
    return box->peer < 0 || (gradients && p->evaluates) ? FSDP_OK : box->way->expect(p, box);
}

/* Lets messages begin for which the GPU has come far enough since the last look. */
static fsdp_status follow_gpu(fsdp_pipeline *p)
{
    for (int i = 0; i < p->info.stages_here && p->gpu.follows; i++) {
        fsdpi_stage *const  s     = &p->stages[i];
        fsdpi_outbox *const out[] = {&s->outputs, &s->input_gradients};
        fsdpi_inbox *const  in[]  = {&s->inputs, &s->output_gradients};

        for (int b = 0; b < 2; b++) {
            FSDP_TRY(tidy(p, out[b]));
            FSDP_TRY(expect(p, in[b], b == 1));
        }
    }
    return FSDP_OK;
}

static fsdp_status pause_once(fsdp_pipeline *p, fsdpi_vigil *vigil)
{
    FSDP_TRY(fsdpi_vigil_pause(p, vigil));
    return follow_gpu(p);
}

/* Until the box has a free place (`sends`: until it may send one more). */
static fsdp_status wait_for_room(fsdp_pipeline *p, const fsdpi_action *a, fsdpi_outbox *box, bool sends)
{
    fsdpi_vigil vigil = fsdpi_vigil_begin(a, box->peer);

    FSDP_TRY(tidy(p, box));
    while (sends ? box->under_way >= p->buffers : fsdpi_shelf_find(&box->shelf, -1) < 0) {
        FSDP_TRY(pause_once(p, &vigil));
        FSDP_TRY(tidy(p, box));
    }
    fsdpi_vigil_end(p, &vigil);
    return FSDP_OK;
}

static fsdp_status send(fsdp_pipeline *p, const fsdpi_action *a, fsdpi_outbox *box)
{
    FSDP_TRY(wait_for_room(p, a, box, true));
    const int place  = fsdpi_shelf_find(&box->shelf, a->micro);
    box->sent[place] = true;
    box->under_way++;
    return box->way->send(p, box, place);
}

static fsdp_status receive(fsdp_pipeline *p, const fsdpi_action *a, fsdpi_inbox *box)
{
    fsdpi_vigil vigil = fsdpi_vigil_begin(a, box->peer);
    bool        there = false;

    FSDP_TRY(box->way->expect(p, box));
    FSDP_TRY(box->way->look(p, box, a->micro, &there, &p->spoiled));
    while (!there) {
        FSDP_TRY(pause_once(p, &vigil));
        FSDP_TRY(box->way->look(p, box, a->micro, &there, &p->spoiled));
    }
    fsdpi_vigil_end(p, &vigil);
    return FSDP_OK;
}

/* Place for what a pass puts out: the next stage's input, where that is on this rank too. */
static fsdp_status find_place(fsdp_pipeline *p, const fsdpi_action *a, fsdpi_outbox *box, fsdpi_shelf *here,
                              unsigned char **memory)
{
    if (here != NULL) {
        *memory = fsdpi_shelf_take(here, a->micro);
        return FSDP_OK;
    }
    FSDP_TRY(wait_for_room(p, a, box, false));
    *memory = fsdpi_shelf_take(&box->shelf, a->micro);
    if (box->way->open != NULL) {
        box->way->open(p, box, fsdpi_shelf_find(&box->shelf, a->micro));
    }
    return FSDP_OK;
}

/* ---- computing ---------------------------------------------------------------------------------------------------------- */

static void compute_loss(fsdp_pipeline *p, const fsdpi_action *a, const void *out, void *gradient)
{
    double value = 0;

    if (accept(p, p->callbacks.loss(p->callbacks.user, a->micro, out, gradient, &value), "loss", a)) {
        p->losses[a->micro] = value;
    }
}

static void let_go(fsdp_pipeline *p, fsdpi_inbox *box, int micro)
{
    const int place = fsdpi_shelf_find(&box->shelf, micro);

    if (place >= 0 && box->way != NULL && box->way->leave != NULL) {
        box->way->leave(p, box, place);
    }
    fsdpi_shelf_give(&box->shelf, micro);
}

static void let_all_go(fsdp_pipeline *p, fsdpi_stage *s, int micro)
{
    let_go(p, &s->inputs, micro);
    let_go(p, &s->output_gradients, micro);
}

static fsdp_status forward(fsdp_pipeline *p, fsdpi_stage *s, const fsdpi_action *a)
{
    const void    *in  = fsdpi_shelf_of(&s->inputs.shelf, a->micro);
    unsigned char *out = s->scratch.memory, *gradient = NULL;

    if (s->is_last) {
        gradient = fsdpi_shelf_take(&s->output_gradients.shelf, a->micro);
    } else {
        FSDP_TRY(find_place(p, a, &s->outputs, s->behind != NULL ? &s->behind->inputs.shelf : NULL, &out));
    }
    if (!p->spoiled && accept_pass(p, s, fsdpi_stage_begin(s, false)) &&
        accept(p,
               p->callbacks.forward(p->callbacks.user, a->stage, a->micro, in,
                                    s->is_last && s->scratch.bytes == 0 ? NULL : out),
               "forward", a) &&
        accept_pass(p, s, fsdpi_stage_end(s, false)) && s->is_last) {
        compute_loss(p, a, s->scratch.bytes == 0 ? NULL : out, gradient);
    }
    if (p->evaluates) {
        let_all_go(p, s, a->micro);
    }
    return FSDP_OK;
}

/* The gradient of the input; with `weights` those of the parameters in the same pass. */
static fsdp_status backward(fsdp_pipeline *p, fsdpi_stage *s, const fsdpi_action *a, bool weights)
{
    const fsdp_pipeline_callbacks *c        = &p->callbacks;
    const void                    *in       = fsdpi_shelf_of(&s->inputs.shelf, a->micro);
    const void                    *gradient = fsdpi_shelf_of(&s->output_gradients.shelf, a->micro);
    unsigned char                 *put      = NULL;

    if (!s->is_first) {
        FSDP_TRY(
            find_place(p, a, &s->input_gradients, s->before != NULL ? &s->before->output_gradients.shelf : NULL, &put));
    }
    if (!p->spoiled && accept_pass(p, s, fsdpi_stage_begin(s, weights)) &&
        accept(p, c->backward_input(c->user, a->stage, a->micro, in, gradient, put), "backward_input", a) &&
        (!weights || c->backward_weight == NULL ||
         accept(p, c->backward_weight(c->user, a->stage, a->micro, in, gradient), "backward_weight", a))) {
        (void)accept_pass(p, s, fsdpi_stage_end(s, weights));
    }
    return FSDP_OK;
}

static void backward_weight(fsdp_pipeline *p, fsdpi_stage *s, const fsdpi_action *a)
{
    const fsdp_pipeline_callbacks *c = &p->callbacks;

    if (!p->spoiled && accept_pass(p, s, fsdpi_stage_begin(s, true)) &&
        accept(p,
               c->backward_weight(c->user, a->stage, a->micro, fsdpi_shelf_of(&s->inputs.shelf, a->micro),
                                  fsdpi_shelf_of(&s->output_gradients.shelf, a->micro)),
               "backward_weight", a)) {
        (void)accept_pass(p, s, fsdpi_stage_end(s, true));
    }
}

/* What has been sent to other nodes, and what is expected, moves while this rank computes. */
static void watch_messages(const fsdp_pipeline *p, const fsdpi_action *a)
{
    if (p->comm != MPI_COMM_NULL && fsdpi_is_compute(a->work)) {
        fsdpi_queue_watch(&p->ctx->queue);
    }
}

static fsdp_status carry_out(fsdp_pipeline *p, const fsdpi_action *a)
{
    fsdpi_stage *s = fsdpi_stage_of(p, a->stage);

    watch_messages(p, a);

    switch (a->work) {
    case FSDPI_RUN_FORWARD:
        return forward(p, s, a);
    case FSDPI_RUN_BACKWARD_INPUT:
        return backward(p, s, a, false);
    case FSDPI_RUN_BACKWARD:
        FSDP_TRY(backward(p, s, a, true));
        let_all_go(p, s, a->micro);
        return FSDP_OK;
    case FSDPI_RUN_BACKWARD_WEIGHT:
        backward_weight(p, s, a);
        let_all_go(p, s, a->micro);
        return FSDP_OK;
    case FSDPI_SEND_F:
        return send(p, a, &s->outputs);
    case FSDPI_SEND_B:
        return send(p, a, &s->input_gradients);
    case FSDPI_RECV_F:
        return receive(p, a, &s->inputs);
    case FSDPI_RECV_B:
        return receive(p, a, &s->output_gradients);
    case FSDPI_RESHARD:
        if (!p->spoiled) {
            fsdpi_stage_reshard(s);
        }
        return FSDP_OK;
    default: /* the first pass behind UNSHARD gathers, and the last one before REDUCE_GRAD reduces */
        return FSDP_OK;
    }
}

/* ---- the whole ---------------------------------------------------------------------------------------------------------- */

static fsdp_status check_streams(const fsdp_pipeline *p)
{
    for (int i = 0; i < p->info.stages_here; i++) {
        FSDP_TRY(fsdpi_stage_check_stream(p, &p->stages[i]));
    }
    return FSDP_OK;
}

static fsdp_status check_ready(const fsdp_pipeline *p)
{
    for (int i = 0; i < p->info.stages_here; i++) {
        if (!p->stages[i].has_units) {
            return fsdpi_fail_together(
                p->ctx, FSDP_ERR_STATE,
                "%s: the units of stage %d are not named; call fsdp_pipeline_set_units on rank %d, "
                "with 0 units for a stage without parameters",
                p->name, p->stages[i].number, p->ctx->rank);
        }
    }
    return check_streams(p);
}

static void begin_inbox(fsdpi_inbox *box)
{
    box->n_begun     = 0;
    box->gpu.n_taken = 0;
}

static void begin(fsdp_pipeline *p)
{
    p->ready   = true;
    p->status  = FSDP_OK;
    p->spoiled = false;
    p->waited  = 0;
    p->step++;
    for (int i = 0; i < p->info.stages_here; i++) {
        p->stages[i].passes_left = p->stages[i].n_passes;
        begin_inbox(&p->stages[i].inputs);
        begin_inbox(&p->stages[i].output_gradients);
    }
}

/* What comes by MPI may come from the beginning. */
static fsdp_status expect_all(fsdp_pipeline *p)
{
    for (int i = 0; i < p->info.stages_here; i++) {
        FSDP_TRY(expect(p, &p->stages[i].inputs, false));
        FSDP_TRY(expect(p, &p->stages[i].output_gradients, true));
    }
    return FSDP_OK;
}

/* Waits on the host for the GPU, until the message of a place has begun. */
static fsdp_status see_off(fsdp_pipeline *p, const fsdpi_outbox *box, int place, fsdpi_work work, int stage)
{
    const fsdpi_action a     = {.work = work, .stage = stage, .micro = box->shelf.micro[place]};
    fsdpi_vigil        vigil = fsdpi_vigil_begin(&a, -1);

    while (box->sent[place] && box->gpu.held_up[place]) {
        FSDP_TRY(pause_once(p, &vigil));
    }
    fsdpi_vigil_end(p, &vigil);
    return FSDP_OK;
}

/* Nobody looks after messages behind the row, and others may wait for them. */
static fsdp_status see_off_all(fsdp_pipeline *p)
{
    for (int i = 0; i < p->info.stages_here && p->gpu.follows; i++) {
        const fsdpi_stage  *s     = &p->stages[i];
        const fsdpi_outbox *out[] = {&s->outputs, &s->input_gradients};

        for (int b = 0; b < 2; b++) {
            for (int k = 0; k < out[b]->shelf.n && out[b]->way == &fsdpi_way_far_device; k++) {
                FSDP_TRY(see_off(p, out[b], k, b == 0 ? FSDPI_SEND_F : FSDPI_SEND_B, s->number));
            }
        }
    }
    return FSDP_OK;
}

/* Forward passes, and what goes with them. */
static bool is_forward(fsdpi_work work)
{
    return work == FSDPI_RUN_FORWARD || work == FSDPI_SEND_F || work == FSDPI_RECV_F || work == FSDPI_RESHARD;
}

/*
 * Forward passes alone keep the order of the schedule. They cannot deadlock where the whole does not: no forward pass waits for a
 * backward one, and places are free earlier.
 */
static fsdp_status run(fsdp_pipeline *p)
{
    FSDP_TRY(expect_all(p));
    for (size_t i = 0; i < p->n_row; i++) {
        if (!p->evaluates || is_forward(p->row[i].work)) {
            FSDP_TRY(follow_gpu(p));
            FSDP_TRY(carry_out(p, &p->row[i]));
        }
    }
    return see_off_all(p);
}

/* In the order of micro-batches, whatever the schedule's. 0 on the ranks that do not know it. */
static double sum_of_losses(const fsdp_pipeline *p)
{
    double sum = 0;

    for (int m = 0; m < p->info.micros && p->owner[p->info.stages - 1] == p->ctx->rank; m++) {
        sum += p->losses[m];
    }
    return sum;
}

/* All ranks are at the end of their rows. */
static fsdp_status conclude(fsdp_pipeline *p, double *loss)
{
    const double        begun = fsdpi_seconds(), mine = p->status == FSDP_OK ? sum_of_losses(p) : 0;
    const fsdpi_purpose purpose = {.name = p->name, .label = "its end", .status = p->status};

    if (p->spoiled && p->gpu.device != NULL) {
        fsdpi_pipeline_gpu_settle(p);
    }
    if (p->status != FSDP_OK) {
        (void)fsdpi_fail_together(p->ctx, p->status, "%s", p->text);
    }
    const fsdp_status status = fsdpi_allreduce(p->ctx, &purpose, &mine, loss, 1, FSDP_F64, FSDP_SUM);
    p->waited += fsdpi_seconds() - begun;
    return status;
}

/* They have been received, or the context has failed. */
static fsdp_status tidy_up(fsdp_pipeline *p)
{
    for (int i = 0; i < p->info.stages_here; i++) {
        fsdpi_outbox *const boxes[] = {&p->stages[i].outputs, &p->stages[i].input_gradients};

        for (int b = 0; b < 2; b++) {
            while (boxes[b]->under_way > 0) {
                FSDP_TRY(tidy(p, boxes[b]));
            }
        }
    }
    return FSDP_OK;
}

static fsdp_status take_step(fsdp_pipeline *p, double *loss)
{
    const double begun = fsdpi_seconds();

    FSDP_TRY(run(p));
    const fsdp_status status = conclude(p, loss);
    if (fsdpi_is_at_rest(&p->ctx->core)) {
        FSDP_TRY(tidy_up(p));
    }
    if (!p->evaluates) {
        p->info.step_seconds = fsdpi_seconds() - begun;
        p->info.wait_seconds = p->waited;
        p->info.steps += status == FSDP_OK;
    }
    return status;
}

static fsdp_status go_through(fsdp_pipeline *pipeline, double *loss)
{
    double sum = 0;

    const fsdp_status ready = pipeline->ready ? FSDP_OK : check_ready(pipeline);
    FSDP_TRY(fsdpi_agree(pipeline->ctx, pipeline->name, "its beginning", pipeline->step, ready, !pipeline->ready));
    begin(pipeline);
    const fsdp_status streams = check_streams(pipeline); /* which the program may have changed since the last step */
    if (streams != FSDP_OK) {
        fsdpi_pipeline_spoil(pipeline, streams, "%s", fsdpi_error_recorded(pipeline->ctx));
    }
    const fsdp_status status = take_step(pipeline, &sum);
    fsdpi_queue_unwatch(&pipeline->ctx->queue);
    if (status != FSDP_OK) {
        char text[FSDPI_DETAIL_BYTES];

        (void)snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, fsdpi_error_recorded(pipeline->ctx));
        fsdpi_pipeline_fail_models(pipeline, status, text);
        (void)fsdpi_record(pipeline->ctx, status, "%s", text);
        return status;
    }
    if (loss != NULL) {
        *loss = sum;
    }
    return FSDP_OK;
}

static fsdp_status call(const char *name, bool evaluates, fsdp_pipeline *pipeline, double *loss)
{
    if (pipeline == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the pipeline is NULL; pass one from fsdp_pipeline_create", name);
    }
    pipeline->name      = name;
    pipeline->evaluates = evaluates;
    return go_through(pipeline, loss);
}

fsdp_status fsdp_pipeline_step(fsdp_pipeline *pipeline, double *loss)
{
    return call("fsdp_pipeline_step", false, pipeline, loss);
}

fsdp_status fsdp_pipeline_evaluate(fsdp_pipeline *pipeline, double *loss)
{
    return call("fsdp_pipeline_evaluate", true, pipeline, loss);
}
