#include "fsdp/optimizer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "lib/hash.h"
#include "lib/memory.h"
#include "shard/model.h"

enum { MOST_STATES = 2 };

/* The state of one unit: arrays as long as its master shard. AdamW: first and second moment; SGD: the momentum buffer. */
typedef struct unit_state {
    float *state[MOST_STATES];
} unit_state;

struct fsdp_optimizer {
    fsdp_optimizer        *next;
    fsdp_model            *model;
    fsdp_optimizer_options options;
    size_t                 steps;
    unit_state             units[]; /* in order of the model's units */
};

size_t fsdpi_optimizer_states(fsdp_optimizer_kind kind)
{
    return kind == FSDP_ADAMW ? 2 : kind == FSDP_SGD_MOMENTUM ? 1 : 0;
}

static size_t optimizer_bytes(const fsdp_model *model)
{
    return sizeof(fsdp_optimizer) + model->n_units * sizeof(unit_state);
}

size_t fsdpi_optimizer_bookkeeping(const fsdp_model *model)
{
    return fsdpi_alloc_size(optimizer_bytes(model));
}

fsdp_status fsdp_optimizer_options_init(fsdp_optimizer_kind kind, fsdp_optimizer_options *options)
{
    if (options == NULL || (int)kind < 0 || kind > FSDP_ADAMW) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_optimizer_options_init: kind %d; use one of fsdp_optimizer_kind, and "
                          "a place for the options",
                          (int)kind);
    }
    *options =
        kind == FSDP_ADAMW
            ? (fsdp_optimizer_options){.kind         = kind,
                                       .lr           = 1e-3,
                                       .weight_decay = 0.01,
                                       .beta1        = 0.9,
                                       .beta2        = 0.999,
                                       .eps          = 1e-8}
            : (fsdp_optimizer_options){.kind = kind, .lr = 1e-2, .momentum = kind == FSDP_SGD_MOMENTUM ? 0.9 : 0.0};
    return FSDP_OK;
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static fsdp_status out_of_range(fsdp_context *ctx, const char *field, double value, const char *range)
{
    return fsdpi_fail(ctx, FSDP_ERR_ARG, "fsdp_optimizer_options.%s is %g; it must be %s", field, value, range);
}

static bool is_rate(double value)
{
    return isfinite(value) && value >= 0.0;
}

static fsdp_status check_options(fsdp_context *ctx, const fsdp_optimizer_options *options)
{
    if ((int)options->kind < 0 || options->kind > FSDP_ADAMW) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "fsdp_optimizer_options.kind is %d; use one of fsdp_optimizer_kind",
                          (int)options->kind);
    }
    if (!is_rate(options->lr)) {
        return out_of_range(ctx, "lr", options->lr, "0 or more");
    }
    if (!is_rate(options->weight_decay)) {
        return out_of_range(ctx, "weight_decay", options->weight_decay, "0 or more");
    }
    if (options->kind == FSDP_SGD_MOMENTUM && !(options->momentum > 0.0 && options->momentum < 1.0)) {
        return out_of_range(ctx, "momentum", options->momentum, "above 0 and below 1");
    }
    if (options->kind != FSDP_ADAMW) {
        return FSDP_OK;
    }
    if (!(options->beta1 >= 0.0 && options->beta1 < 1.0)) {
        return out_of_range(ctx, "beta1", options->beta1, "0 or more, and below 1");
    }
    if (!(options->beta2 >= 0.0 && options->beta2 < 1.0)) {
        return out_of_range(ctx, "beta2", options->beta2, "0 or more, and below 1");
    }
    return isfinite(options->eps) && options->eps > 0.0 ? FSDP_OK : out_of_range(ctx, "eps", options->eps, "above 0");
}

static size_t state_bytes(const fsdp_unit *unit)
{
    return fsdpi_held_elements(&unit->layout, unit->model->options.strategy) * sizeof(float);
}

static void release_states(fsdp_optimizer *optimizer)
{
    size_t u = 0;

    if (optimizer == NULL) {
        return;
    }
    for (const fsdp_unit *unit = optimizer->model->first; unit != NULL; unit = unit->next, u++) {
        for (size_t k = 0; k < MOST_STATES; k++) {
            fsdpi_free(optimizer->model->ctx, FSDP_MEMORY_OPTIMIZER, optimizer->units[u].state[k], state_bytes(unit));
        }
    }
    fsdpi_free(optimizer->model->ctx, FSDP_MEMORY_BOOKKEEPING, optimizer, optimizer_bytes(optimizer->model));
}

/* NULL, with what could be allocated released again, where memory is short. */
static fsdp_optimizer *allocate_optimizer(fsdp_model *model, const fsdp_optimizer_options *options)
{
    const size_t    n_states = fsdpi_optimizer_states(options->kind);
    fsdp_optimizer *made     = fsdpi_alloc(model->ctx, FSDP_MEMORY_BOOKKEEPING, optimizer_bytes(model));
    bool            complete = made != NULL;
    size_t          u        = 0;

    if (!complete) {
        return NULL;
    }
    made->model   = model;
    made->options = *options;
    for (const fsdp_unit *unit = model->first; unit != NULL && complete; unit = unit->next, u++) {
        for (size_t k = 0; k < n_states && complete; k++) {
            made->units[u].state[k] = fsdpi_alloc(model->ctx, FSDP_MEMORY_OPTIMIZER, state_bytes(unit));
            complete                = made->units[u].state[k] != NULL;
        }
    }
    if (!complete) {
        release_states(made);
        return NULL;
    }
    return made;
}

static void describe_options(const fsdp_optimizer_options *o, char *text, size_t size)
{
    (void)snprintf(text, size, "kind %d, lr %.9g, weight_decay %.9g, betas %.9g %.9g, eps %.9g, momentum %.9g%s",
                   (int)o->kind, o->lr, o->weight_decay, o->beta1, o->beta2, o->eps, o->momentum,
                   o->nesterov ? ", nesterov" : "");
}

static fsdp_status check_creation(fsdp_model *model, const fsdp_optimizer_options *options,
                                  fsdp_optimizer *const *optimizer)
{
    if (options == NULL || optimizer == NULL) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG, "fsdp_optimizer_create: the %s NULL",
                          options == NULL ? "options are" : "place for the optimizer is");
    }
    if (!model->committed) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE,
                          "fsdp_optimizer_create: the model is not committed; call "
                          "fsdp_model_commit first");
    }
    return check_options(model->ctx, options);
}

fsdp_status fsdp_optimizer_create(fsdp_model *model, const fsdp_optimizer_options *options, fsdp_optimizer **optimizer)
{
    char            label[FSDPI_DETAIL_BYTES] = "";
    fsdp_optimizer *made                      = NULL;

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_optimizer_create: the model is NULL; pass one from fsdp_model_create");
    }
    fsdp_status status = check_creation(model, options, optimizer);
    if (status == FSDP_OK) {
        *optimizer = NULL;
        describe_options(options, label, sizeof label);
        made   = allocate_optimizer(model, options);
        status = made != NULL ? FSDP_OK : FSDP_ERR_MEMORY;
    }
    status = fsdpi_agree(model->ctx, "fsdp_optimizer_create", label, 0, status, false);
    if (status != FSDP_OK || made == NULL) {
        release_states(made);
        return status;
    }
    made->next        = model->optimizers;
    model->optimizers = made;
    *optimizer        = made;
    return FSDP_OK;
}

void fsdp_optimizer_destroy(fsdp_optimizer *optimizer)
{
    if (optimizer == NULL) {
        return;
    }
    for (fsdp_optimizer **link = &optimizer->model->optimizers; *link != NULL; link = &(*link)->next) {
        if (*link == optimizer) {
            *link = optimizer->next;
            break;
        }
    }
    release_states(optimizer);
}

void fsdpi_optimizers_release(fsdp_model *model)
{
    while (model->optimizers != NULL) {
        fsdp_optimizer_destroy(model->optimizers);
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

fsdp_status fsdp_optimizer_set_lr(fsdp_optimizer *optimizer, double lr)
{
    if (optimizer == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_optimizer_set_lr: the optimizer is NULL");
    }
    if (!is_rate(lr)) {
        return fsdpi_fail(optimizer->model->ctx, FSDP_ERR_ARG, "fsdp_optimizer_set_lr: %g; it must be 0 or more", lr);
    }
    optimizer->options.lr = lr;
    return FSDP_OK;
}

size_t fsdp_optimizer_steps(const fsdp_optimizer *optimizer)
{
    return optimizer != NULL ? optimizer->steps : 0;
}

/* The coefficients of the present step, for elements that decay. */
typedef struct coefficients {
    fsdpi_adamw adamw;
    fsdpi_sgd   sgd;
} coefficients;

static coefficients coefficients_of(const fsdp_optimizer *optimizer)
{
    const fsdp_optimizer_options *o = &optimizer->options;
    const double                  t = (double)(optimizer->steps + 1);

    return (coefficients){.adamw = {.lr           = (float)o->lr,
                                    .beta1        = (float)o->beta1,
                                    .beta2        = (float)o->beta2,
                                    .eps          = (float)o->eps,
                                    .weight_decay = (float)o->weight_decay,
                                    .correction1  = (float)(1.0 - pow(o->beta1, t)),
                                    .correction2  = (float)(1.0 - pow(o->beta2, t))},
                          .sgd   = {.lr           = (float)o->lr,
                                    .momentum     = (float)o->momentum,
                                    .weight_decay = (float)o->weight_decay,
                                    .nesterov     = o->nesterov != 0,
                                    .first_step   = optimizer->steps == 0}};
}

/* `begin` counts from the first element that this rank holds of the unit. */
static void update_run(const fsdp_optimizer *optimizer, const fsdp_unit *unit, const unit_state *state, size_t begin,
                       size_t count, coefficients c)
{
    const fsdpi_kernels *kernels = optimizer->model->ctx->kernels;
    float               *w       = unit->master + begin;
    const float         *g       = unit->gradient + begin;
    float               *first   = state->state[0] != NULL ? state->state[0] + begin : NULL;

    if (optimizer->options.kind == FSDP_ADAMW) {
        kernels->adamw(w, g, first, state->state[1] + begin, count, &c.adamw);
    } else {
        kernels->sgd(w, g, first, count, &c.sgd);
    }
}

/* Padding is no part of any interval and stays zero. */
static void update_unit(const fsdp_optimizer *optimizer, fsdp_unit *unit, const unit_state *state)
{
    const fsdpi_held held = fsdpi_held_slices(unit->model);

    for (int i = 0; i < held.n; i++) {
        const size_t n = fsdpi_held_intervals(unit, i);

        for (size_t k = 0; k < n; k++) {
            const fsdp_interval *run = &unit->intervals[k];
            coefficients         c   = coefficients_of(optimizer);

            if ((unit->tensors[run->tensor].flags & FSDP_TENSOR_NO_WEIGHT_DECAY) != 0) {
                c.adamw.weight_decay = 0.0F;
                c.sgd.weight_decay   = 0.0F;
            }
            update_run(optimizer, unit, state, (size_t)i * unit->layout.shard + run->shard_begin, run->count, c);
        }
    }
}

static fsdp_status check_step(const fsdp_optimizer *optimizer)
{
    FSDP_TRY(fsdpi_between_passes(optimizer->model, "fsdp_optimizer_step"));
    for (const fsdp_unit *unit = optimizer->model->first; unit != NULL; unit = unit->next) {
        if (!unit->has_gradient) {
            return fsdpi_fail(optimizer->model->ctx, FSDP_ERR_STATE,
                              "fsdp_optimizer_step: unit '%s' has no gradient "
                              "since the last step; run its backward pass first",
                              unit->name);
        }
    }
    return FSDP_OK;
}

fsdp_status fsdp_optimizer_step(fsdp_optimizer *optimizer)
{
    char   label[64];
    size_t u = 0;

    if (optimizer == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_optimizer_step: the optimizer is NULL");
    }
    (void)snprintf(label, sizeof label, "step %zu, lr %.17g", optimizer->steps + 1, optimizer->options.lr);
    FSDP_TRY(fsdpi_agree(optimizer->model->ctx, "fsdp_optimizer_step", label, 0, check_step(optimizer), false));
    for (fsdp_unit *unit = optimizer->model->first; unit != NULL; unit = unit->next, u++) {
        update_unit(optimizer, unit, &optimizer->units[u]);
        unit->has_gradient = false;
    }
    optimizer->steps++;
    return FSDP_OK;
}
