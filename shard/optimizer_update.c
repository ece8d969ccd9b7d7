/*
 * What a step does to the elements that a rank holds: one kernel for each run of them that has one learning rate and one
 * weight decay. Padding is in no run and stays zero.
 */
#include <math.h>

#include "shard/compute.h"
#include "shard/optimizer.h"

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* Of the present step; `decays`: whether the weight decay is for these elements. */
static fsdpi_coefficients coefficients_of(const fsdp_optimizer *optimizer, size_t group, bool decays)
{
    const fsdp_optimizer_options *o     = &optimizer->options;
    const double                  t     = (double)(optimizer->steps + 1);
    const float                   lr    = (float)fsdpi_group_lr(optimizer, group);
    const float                   decay = decays ? (float)fsdpi_group_weight_decay(optimizer, group) : 0.0F;

    return (fsdpi_coefficients){
        .adam = {.lr           = lr,
                 .beta1        = (float)o->beta1,
                 .beta2        = (float)o->beta2,
                 .eps          = (float)o->eps,
                 .weight_decay = decay,
                 .correction1  = (float)(1.0 - pow(o->beta1, t)),
                 .correction2  = (float)(1.0 - pow(o->beta2, t))},
        .lion = {.lr = lr, .beta1 = (float)o->beta1, .beta2 = (float)o->beta2, .weight_decay = decay},
        .sgd  = {.lr           = lr,
                 .momentum     = (float)o->momentum,
                 .weight_decay = decay,
                 .nesterov     = o->nesterov != 0,
                 .first_step   = optimizer->steps == 0},
    };
}

/* A run so far, and what it has in common. */
typedef struct run {
    size_t begin, end;
    size_t group;
    bool   decays;
} run;

static run run_of_interval(const fsdpi_flat *flat, const fsdpi_flat_state *state, int i, const fsdp_interval *interval)
{
    const size_t begin = (size_t)i * flat->layout.shard + interval->shard_begin;

    return (run){.begin  = begin,
                 .end    = begin + interval->count,
                 .group  = state->group[interval->tensor],
                 .decays = (flat->tensors[interval->tensor]->flags & FSDP_TENSOR_NO_WEIGHT_DECAY) == 0};
}

static bool continues(const run *last, const run *next)
{
    return last->end == next->begin && last->group == next->group && last->decays == next->decays;
}

/* What of a run lies between `begin` and `end`. */
static void update_part(const fsdp_optimizer *optimizer, const run *r, size_t begin, size_t end,
                        fsdpi_run_update *update, const void *what)
{
    const size_t first = r->begin > begin ? r->begin : begin, last = r->end < end ? r->end : end;

    if (first < last) {
        const fsdpi_coefficients c = coefficients_of(optimizer, r->group, r->decays);

        update(what, first, last - first, &c);
    }
}

void fsdpi_optimizer_runs(const fsdp_optimizer *optimizer, fsdpi_flat *flat, const fsdpi_flat_state *state,
                          size_t begin, size_t end, fsdpi_run_update *update, const void *what)
{
    const fsdpi_held held = fsdpi_held_slices(flat->model);
    run              last = {0};

    for (int i = 0; i < held.n; i++) {
        const size_t n = fsdpi_held_intervals(flat, i);

        for (size_t k = 0; k < n; k++) {
            const run next = run_of_interval(flat, state, i, &flat->intervals[k]);

            if (continues(&last, &next)) {
                last.end = next.end;
            } else {
                update_part(optimizer, &last, begin, end, update, what);
                last = next;
            }
        }
    }
    update_part(optimizer, &last, begin, end, update, what);
}

/* ---- on the host ------------------------------------------------------------------------------------------------- */

static void update_in_f32(const fsdp_optimizer *optimizer, float *w, const float *g, float *const *moments,
                          size_t count, const fsdpi_coefficients *c)
{
    const fsdpi_kernels *kernels = optimizer->model->ctx->kernels;

    switch (optimizer->options.kind) {
    case FSDP_SGD:
    case FSDP_SGD_MOMENTUM:
        kernels->sgd(w, g, moments[0], count, &c->sgd);
        break;
    case FSDP_LION:
        kernels->lion(w, g, moments[0], count, &c->lion);
        break;
    case FSDP_ADAM:
        kernels->adam(w, g, moments[0], moments[1], count, &c->adam);
        break;
    case FSDP_ADAMW:
        kernels->adamw(w, g, moments[0], moments[1], count, &c->adam);
        break;
    }
}

/* ELEMENTS of a run whose moments are in f32 at a time: with weights and gradient, 16 KiB in the first-level cache. */
enum { PIECE = 1024 };

static void update_in_bf16(const fsdp_optimizer *optimizer, float *w, const float *g, uint16_t *const *moments,
                           size_t count, const fsdpi_coefficients *c)
{
    const fsdpi_kernels *kernels = optimizer->model->ctx->kernels;
    const size_t         n       = fsdpi_optimizer_states(optimizer->options.kind);
    float                widened[FSDPI_MOST_STATES][PIECE];
    float *const         pieces[FSDPI_MOST_STATES] = {widened[0], widened[1]};

    for (size_t i = 0; i < count; i += PIECE) {
        const size_t length = count - i < PIECE ? count - i : PIECE;

        for (size_t k = 0; k < n; k++) {
            kernels->cast(widened[k], FSDP_F32, moments[k] + i, FSDP_BF16, length);
        }
        update_in_f32(optimizer, w + i, g + i, pieces, length, c);
        for (size_t k = 0; k < n; k++) {
            kernels->cast(moments[k] + i, FSDP_BF16, widened[k], FSDP_F32, length);
        }
    }
}

/* A flat parameter of an optimizer. */
typedef struct target {
    const fsdp_optimizer   *optimizer;
    const fsdpi_flat       *flat;
    const fsdpi_flat_state *state;
} target;

static void update_run(const void *what, size_t begin, size_t count, const fsdpi_coefficients *c)
{
    const target           *t         = what;
    const fsdp_optimizer   *optimizer = t->optimizer;
    const fsdpi_flat_state *state     = t->state;
    const size_t            n         = fsdpi_optimizer_states(optimizer->options.kind);
    float                  *w         = t->flat->master + begin;
    const float            *g         = t->flat->gradient + begin;

    if (optimizer->options.moment_dtype == FSDP_BF16) {
        uint16_t *moments[FSDPI_MOST_STATES] = {0};

        for (size_t k = 0; k < n; k++) {
            moments[k] = (uint16_t *)state->moments[k] + begin;
        }
        update_in_bf16(optimizer, w, g, moments, count, c);
    } else {
        float *moments[FSDPI_MOST_STATES] = {0};

        for (size_t k = 0; k < n; k++) {
            moments[k] = (float *)state->moments[k] + begin;
        }
        update_in_f32(optimizer, w, g, moments, count, c);
    }
}

static void update_on_host(fsdp_optimizer *optimizer)
{
    size_t u = 0;

    for (fsdpi_flat *flat = optimizer->model->flats; flat != NULL; flat = flat->next, u++) {
        const target t = {.optimizer = optimizer, .flat = flat, .state = &optimizer->flats[u]};

        if (!flat->frozen) {
            fsdpi_optimizer_runs(optimizer, flat, t.state, 0, fsdpi_held_elements(flat), update_run, &t);
        }
    }
}

void fsdpi_optimizer_update(fsdp_optimizer *optimizer)
{
    (fsdpi_is_on_device(optimizer->model) ? fsdpi_update_on_device : update_on_host)(optimizer);
}
