/*
 * What a program does with a random model: steps of one or more micro-batches, each a forward pass through units and a
 * backward pass in the opposite order, with all that may come between.
 */
#include <math.h>
#include <string.h>

#include "tests/shard/random/numbers.h"
#include "tests/shard/random/random_model.h"

enum { PART_PROGRAM = 1000, MOST_VISITS = 2 * MOST_UNITS };

/* A step that is being written. */
typedef struct writer {
    random_model    *m;
    planned_segment *segment;
    random_draws     d;
    size_t           order[MOST_UNITS];   /* of units, in most micro-batches */
    size_t           visits[MOST_VISITS]; /* of this micro-batch */
    size_t           n_visits;
    bool             open[MOST_UNITS];
    size_t           n_open, most_open;
    bool             last;              /* micro-batch of the step */
    size_t           sync;              /* of this micro-batch: an fsdp_sync */
    bool             holds;             /* gradients of optimizers that have sat out a step */
    bool             repeats;           /* the passes of this step, in the next one */
    bool             waits[MOST_UNITS]; /* has gradients that are not reduced over all ranks yet */
} writer;

static bool wants(writer *w, feature which, unsigned percent)
{
    return draw_chance(&w->d, percent) && (w->m->features >> which & 1) != 0;
}

static planned_op *add_op(writer *w, op_kind kind)
{
    planned_segment *segment = w->segment;
    planned_op      *op      = &segment->ops[segment->n_ops < MOST_OPS ? segment->n_ops++ : MOST_OPS - 1];

    *op = (planned_op){.kind = kind};
    return op;
}

static planned_op *add_pass(writer *w, op_kind kind, size_t unit)
{
    planned_op *op = add_op(w, kind);

    op->unit = unit;
    return op;
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

static void shuffle(random_draws *d, size_t *order, size_t n)
{
    for (size_t i = n; i-- > 1;) {
        const size_t k = draw_below(d, i + 1), other = order[k];

        order[k] = order[i];
        order[i] = other;
    }
}

static void open_unit(writer *w, size_t unit)
{
    w->open[unit] = true;
    w->n_open++;
}

static void close_unit(writer *w, size_t unit)
{
    w->open[unit] = false;
    w->n_open--;
}

static void recompute(writer *w, size_t unit)
{
    if (w->n_open < w->most_open && !w->open[unit]) {
        (void)add_pass(w, OP_BEGIN_FORWARD, unit);
        (void)add_pass(w, OP_END_FORWARD, unit);
    }
}

/* Whether the next visit may lie within the passes that are open. */
static bool may_nest(writer *w, size_t unit)
{
    return wants(w, WITH_NESTED, 50) && w->n_open < w->most_open && !w->open[unit];
}

/* Visit `at`, and others within it; returns the visit behind them. */
static size_t write_forward(writer *w, size_t at)
{
    const size_t unit = w->visits[at];
    size_t       next = at + 1;

    (void)add_pass(w, OP_BEGIN_FORWARD, unit);
    open_unit(w, unit);
    while (next < w->n_visits && may_nest(w, w->visits[next])) {
        next = write_forward(w, next);
    }
    (void)add_pass(w, OP_END_FORWARD, unit);
    close_unit(w, unit);
    return next;
}

/* The same for those before it; returns how many are left. */
static size_t write_backward(writer *w, size_t at)
{
    const size_t unit = w->visits[at];
    size_t       left = at;

    if (wants(w, WITH_RECOMPUTED, 20)) {
        recompute(w, unit);
    }
    planned_op *begin = add_pass(w, OP_BEGIN_BACKWARD, unit);
    if (wants(w, WITH_OVERFLOWS, 3) && w->m->scales) {
        begin->n = 1 + draw_below(&w->d, (size_t)w->segment->size);
    }
    open_unit(w, unit);
    if (wants(w, WITH_RECOMPUTED, 10) && left > 0) {
        recompute(w, w->visits[left - 1]);
    }
    while (left > 0 && may_nest(w, w->visits[left - 1])) {
        left = write_backward(w, left - 1);
    }
    (void)add_pass(w, OP_END_BACKWARD, unit);
    close_unit(w, unit);
    return left;
}

/* All units that need a gradient are in the last micro-batch of a step. */
static bool is_needed(const writer *w, size_t unit)
{
    const bool used = w->segment->options.unused == FSDP_UNUSED_ERROR || w->waits[unit];

    return w->last && w->m->units[unit].trainable && used;
}

static void draw_visits(writer *w)
{
    w->n_visits = 0;
    if (wants(w, WITH_SHUFFLE, 15)) {
        shuffle(&w->d, w->order, w->m->n_units);
    }
    for (size_t i = 0; i < w->m->n_units; i++) {
        const size_t unit = w->order[i];

        if (!wants(w, WITH_UNUSED, 25) || is_needed(w, unit)) {
            w->visits[w->n_visits++] = unit;
        }
        if (wants(w, WITH_REPEATED, 15) && w->n_visits > 0 && w->n_visits + w->m->n_units < MOST_VISITS) {
            w->visits[w->n_visits] = w->visits[draw_below(&w->d, w->n_visits)];
            w->n_visits++;
        }
    }
}

static void write_micro_batch(writer *w)
{
    draw_visits(w);
    for (size_t i = 0; i < w->n_visits; i++) {
        w->waits[w->visits[i]] = w->sync != FSDP_SYNC_ALL;
    }
    (void)add_op(w, OP_FORGET);
    for (size_t at = 0; at < w->n_visits;) {
        at = write_forward(w, at);
    }
    for (size_t left = w->n_visits; left > 0;) {
        left = write_backward(w, left - 1);
    }
}

static void write_evaluation(writer *w)
{
    const bool last = w->last;

    w->last = false;
    draw_visits(w);
    w->last = last;
    (void)add_op(w, OP_FORGET);
    for (size_t at = 0; at < w->n_visits;) {
        at = write_forward(w, at);
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* A hook that keeps something back would do so for sums of other passes; the reference does not follow that. */
static bool may_stay_in_group(const writer *w)
{
    const fsdp_strategy strategy = w->segment->options.strategy;

    return (strategy == FSDP_HYBRID_SHARD || strategy == FSDP_HYBRID_SHARD_ZERO2) && w->segment->hook < HOOK_INT8 &&
           (w->m->features >> WITH_GROUP_SYNC & 1) != 0;
}

static void write_modes(writer *w, bool in_group)
{
    const bool   local = w->segment->options.local_gradients;
    const bool   syncs = w->last || !local || draw_chance(&w->d, 30);
    const size_t keeps = draw_chance(&w->d, 70);

    w->sync = !syncs ? FSDP_SYNC_NONE : in_group ? FSDP_SYNC_GROUP : FSDP_SYNC_ALL;
    if (local || may_stay_in_group(w)) {
        add_op(w, OP_SYNC)->n = w->sync;
    }
    if (w->segment->options.kept_units > 0) {
        add_op(w, OP_KEEP)->n = keeps;
    }
}

/* Those within the group come first. */
static void write_micro_batches(writer *w)
{
    const size_t more  = 1 + draw_below(&w->d, 3);
    const size_t least = may_stay_in_group(w) ? 2 : 1,
                 n     = wants(w, WITH_MICRO_BATCHES, 60) && more > least ? more : least;
    const size_t first = 1 + draw_below(&w->d, n), in_group = wants(w, WITH_GROUP_SYNC, 70) && !w->holds ? first : 0;

    memset(w->waits, 0, sizeof w->waits);
    for (size_t i = 0; i < n; i++) {
        w->last = i + 1 == n;
        write_modes(w, i < in_group && !w->last && may_stay_in_group(w));
        write_micro_batch(w);
    }
}

static void write_divisor(writer *w, unsigned percent)
{
    const double divisor = draw_uniform(&w->d, 0.5, 40);

    if (wants(w, WITH_STEP_DIVISOR, percent) && !w->holds) { /* which are of the divisor before */
        add_op(w, OP_DIVISOR)->value = divisor;
    }
}

static void write_norms(writer *w)
{
    const double most   = draw_chance(&w->d, 40) ? INFINITY : draw_uniform(&w->d, 0.01, 3);
    const double factor = draw_uniform(&w->d, -2, 2);

    if (wants(w, WITH_SCALING, 20)) {
        add_op(w, OP_SCALE)->value = factor;
    }
    if (wants(w, WITH_NORMS, 30)) {
        add_op(w, OP_NORM)->value = most;
    }
}

static void write_clipping(writer *w)
{
    const double  most    = draw_chance(&w->d, 20) ? INFINITY : draw_uniform(&w->d, 0.01, 3);
    const op_kind kinds[] = {OP_CLIP_NORM, OP_CLIP_NORM, OP_CLIP_NORM_INF, OP_CLIP_VALUE};
    const op_kind kind    = kinds[draw_below(&w->d, 4)];

    if (wants(w, WITH_CLIPPING, 60)) {
        add_op(w, kind)->value = kind == OP_CLIP_VALUE && isinf(most) ? 0.0 : most;
    }
    if (wants(w, WITH_CLIPPING, 25)) {
        add_op(w, OP_CLIP_NORM)->value = INFINITY;
    }
}

/* The passes so far up to one of them, a failure, and all is as it was before the step. */
static void write_failure(writer *w, size_t begun)
{
    planned_segment *segment = w->segment;
    const size_t     kept    = begun + draw_below(&w->d, segment->n_ops - begun);
    const size_t     kind    = draw_below(&w->d, 2);
    const int        rank    = (int)draw_below(&w->d, (size_t)segment->size);
    const size_t     unit    = draw_below(&w->d, w->m->n_units);

    segment->n_ops = kept;
    planned_op *op = add_op(w, OP_FAIL);
    op->n          = kind;
    op->root       = rank;
    op->unit       = unit;
    (void)add_op(w, OP_RECOVER);
}

static void write_tensor_io(writer *w)
{
    const size_t  t        = draw_below(&w->d, w->m->n_tensors);
    const op_kind kind     = draw_chance(&w->d, 50) ? OP_EXPORT : OP_IMPORT;
    const int     root     = (int)draw_below(&w->d, (size_t)w->segment->size);
    const bool    wants_it = wants(w, WITH_TENSOR_IO, 20);

    if (wants_it) {
        planned_op *op = add_op(w, kind);

        op->n    = t;
        op->root = root;
    }
}

static void write_rates(writer *w)
{
    const double lr = draw_uniform(&w->d, 0, 0.02);
    const size_t n = draw_below(&w->d, w->m->n_groups + 1), optimizer = draw_below(&w->d, w->m->n_optimizers);

    if (wants(w, WITH_RATES, 40)) {
        planned_op *op = add_op(w, OP_SET_RATE);

        op->n     = n;
        op->unit  = n > 0 ? w->m->groups[n - 1].optimizer : optimizer;
        op->value = lr;
    }
}

/* In any order; some may sit it out, but for those under a loss scaler, whose scale their gradients have, and in what is repeated. */
static void write_steps_of_optimizers(writer *w)
{
    const size_t n = w->m->n_optimizers, first = draw_below(&w->d, n);

    w->holds = false;
    for (size_t k = 0; k < n; k++) {
        if (wants(w, WITH_TURNS, 15) && n > 1 && !w->m->scales && !w->repeats) {
            w->holds = true;
        } else {
            add_op(w, OP_STEP)->n = (first + k) % n;
        }
    }
}

/* All of a step behind its passes. */
static void write_end_of_step(writer *w)
{
    write_divisor(w, 20);
    if (wants(w, WITH_CLIPPING, 50) && w->m->scales) {
        (void)add_op(w, OP_UNSCALE);
    }
    write_norms(w);
    write_clipping(w);
    write_rates(w);
    write_steps_of_optimizers(w);
    (void)add_op(w, OP_SET_BUFFERS);
    write_tensor_io(w);
}

static bool has_passes(const planned_segment *segment, size_t begun, size_t end)
{
    for (size_t i = begun; i < end; i++) {
        if (segment->ops[i].kind == OP_BEGIN_FORWARD || segment->ops[i].kind == OP_BEGIN_BACKWARD) {
            return true;
        }
    }
    return false;
}

/* A step, and its passes again, which one rank without samples repeats from its record. */
static void write_absence(writer *w)
{
    planned_segment *segment = w->segment;
    const int        rank    = (int)draw_below(&w->d, (size_t)segment->size);

    (void)add_op(w, OP_ZERO_GRAD); /* passes of an evaluation do not count */
    const size_t begun = segment->n_ops;
    write_micro_batches(w);
    const size_t end = segment->n_ops;
    if (!has_passes(segment, begun, end)) { /* then the record is of an earlier step */
        return;
    }
    w->repeats = true;
    write_end_of_step(w);
    w->repeats                       = false;
    add_op(w, OP_BEGIN_ABSENT)->root = rank;
    for (size_t i = begun; i < end; i++) {
        const planned_op op   = segment->ops[i];
        const bool       here = op.kind == OP_BEGIN_BACKWARD && op.n == (size_t)rank + 1;
        planned_op      *copy = add_op(w, op.kind);

        *copy   = op;
        copy->n = here ? 0 : op.n;
    }
    add_op(w, OP_END_ABSENT)->root = rank;
}

static void write_passes(writer *w)
{
    const size_t begun = w->segment->n_ops;

    write_divisor(w, 15);
    write_micro_batches(w);
    const bool repeats = w->segment->hook < HOOK_INT8; /* whose state is then that of a step that failed half way */
    if (wants(w, WITH_FAILURES, 15) && repeats) {
        write_failure(w, begun);
        write_micro_batches(w);
    } else if (wants(w, WITH_FAILURES, 10) && repeats) {
        (void)add_op(w, OP_ZERO_GRAD);
        write_micro_batches(w);
    }
}

static void write_step(writer *w)
{
    if (wants(w, WITH_ABSENT, 20) && w->segment->options.recorded_passes > 0) {
        write_absence(w);
    } else {
        write_passes(w);
    }
    write_end_of_step(w);
    if (wants(w, WITH_EVALUATION, 30)) {
        write_evaluation(w);
    }
}

void draw_program(random_model *m, size_t s)
{
    planned_segment *segment = &m->segments[s];
    writer           w       = {.m = m, .segment = segment, .d = random_draws_of(m->seed, PART_PROGRAM + s)};
    const size_t     n = 1 + draw_below(&w.d, 3), steps = wants(&w, WITH_STEPS, 100) ? n : 1;

    w.most_open = segment->config.views_in_flight > 0 ? (size_t)segment->config.views_in_flight : 2;
    for (size_t u = 0; u < m->n_units; u++) {
        w.order[u] = u;
    }
    for (size_t i = 0; i < steps && segment->n_ops < MOST_OPS / 2; i++) {
        write_step(&w);
    }
    if (w.holds) {
        (void)add_op(&w, OP_ZERO_GRAD); /* no checkpoint has gradients */
    }
}
