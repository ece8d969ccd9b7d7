#include "shard/optimizer/optimizer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/device/memory.h"
#include "shard/optimizer/muon.h"
#include "shard/optimizer/optimizer_custom.h"
#include "shard/optimizer/optimizer_groups.h"
#include "shard/optimizer/optimizer_state.h"
#include "shard/schedule/between_passes.h"
#include "shard/schedule/divisor.h"
#include "shard/schedule/failed_step.h"
#include "shard/schedule/gather.h"
#include "shard/schedule/masters.h"
#include "shard/schedule/reduction.h"
#include "shard/schedule/replay.h"
#include "shard/state/optimizer_kind.h"
#include "shard/state/plane.h"
#include "shard/state/slices.h"
#include "shard/state/tensor_groups.h"
#include "shard/storage/compute.h"
#include "shard/storage/model_memory.h"

static size_t optimizer_bytes(const fsdpi_plan *plan)
{
    return sizeof(fsdp_optimizer) + plan->n_flats * sizeof(fsdpi_flat_state) +
           plan->n_tensors * (sizeof(fsdpi_group) + sizeof(size_t));
}

size_t fsdpi_optimizer_bookkeeping(const fsdpi_plan *plan)
{
    return fsdpi_alloc_size(optimizer_bytes(plan));
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static fsdp_status out_of_range(fsdp_context *ctx, const char *field, double value, const char *range)
{
    return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_optimizer_options.%s is %g; it must be %s", field, value,
                               range);
}

static fsdp_status check_betas(fsdp_context *ctx, const fsdp_optimizer_options *options)
{
    if (!(options->beta1 >= 0.0 && options->beta1 < 1.0)) {
        return out_of_range(ctx, "beta1", options->beta1, "0 or more, and below 1");
    }
    if (!(options->beta2 >= 0.0 && options->beta2 < 1.0)) {
        return out_of_range(ctx, "beta2", options->beta2, "0 or more, and below 1");
    }
    return FSDP_OK;
}

static bool is_state_name(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    const size_t      length    = name != NULL ? strnlen(name, FSDPI_STATE_NAME_BYTES) : 0;

    return length > 0 && length < FSDPI_STATE_NAME_BYTES - 1 && strspn(name, letters) == length &&
           strcmp(name, "master") != 0;
}

static bool is_taken(const fsdp_optimizer_options *options, size_t k)
{
    for (size_t i = 0; i < k; i++) {
        if (strcmp(options->state_names[i], options->state_names[k]) == 0) {
            return true;
        }
    }
    return false;
}

static fsdp_status check_custom(fsdp_context *ctx, const fsdp_optimizer_options *options)
{
    if (options->update == NULL) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "fsdp_optimizer_options.update is NULL; FSDP_CUSTOM needs a function");
    }
    for (size_t k = 0; k < options->n_states && options->state_names != NULL; k++) {
        if (!is_state_name(options->state_names[k]) || is_taken(options, k)) {
            return fsdpi_fail_together(
                ctx, FSDP_ERR_ARG,
                "fsdp_optimizer_options.state_names[%zu] is '%.60s'; use 1 to %d letters, digits, _ and -, "
                "another for each state, and not 'master'",
                k, options->state_names[k] != NULL ? options->state_names[k] : "(NULL)", FSDPI_STATE_NAME_BYTES - 2);
        }
    }
    return FSDP_OK;
}

static fsdp_status check_muon(fsdp_context *ctx, const fsdp_optimizer_options *options)
{
    if (!(options->momentum >= 0.0 && options->momentum < 1.0)) {
        return out_of_range(ctx, "momentum", options->momentum, "0 or more, and below 1");
    }
    if (!(isfinite(options->muon_scale) && options->muon_scale >= 0.0)) {
        return out_of_range(ctx, "muon_scale", options->muon_scale, "0 or more");
    }
    return isfinite(options->eps) && options->eps > 0.0 ? FSDP_OK : out_of_range(ctx, "eps", options->eps, "above 0");
}

static fsdp_status check_options(fsdp_context *ctx, const fsdp_optimizer_options *options, fsdp_dtype masters)
{
    FSDP_TRY(fsdpi_check_states(ctx, "fsdp_optimizer_options:", "fsdp_optimizer_options_init", options->kind,
                                options->n_states, options->moment_dtype, masters));
    if (!fsdpi_is_rate(options->lr)) {
        return out_of_range(ctx, "lr", options->lr, "0 or more");
    }
    if (!fsdpi_is_rate(options->weight_decay)) {
        return out_of_range(ctx, "weight_decay", options->weight_decay, "0 or more");
    }
    switch (options->kind) {
    case FSDP_SGD:
        return FSDP_OK;
    case FSDP_SGD_MOMENTUM:
        return options->momentum > 0.0 && options->momentum < 1.0
                   ? FSDP_OK
                   : out_of_range(ctx, "momentum", options->momentum, "above 0 and below 1");
    case FSDP_LION:
        return check_betas(ctx, options);
    case FSDP_ADAM:
    case FSDP_ADAMW:
        FSDP_TRY(check_betas(ctx, options));
        return isfinite(options->eps) && options->eps > 0.0 ? FSDP_OK
                                                            : out_of_range(ctx, "eps", options->eps, "above 0");
    case FSDP_CUSTOM:
        return check_custom(ctx, options);
    case FSDP_MUON:
        return check_muon(ctx, options);
    }
    return FSDP_OK;
}

/* The slowest decay of a moment that the options ask for; 0 where there is no moment. */
static double slowest_beta(const fsdp_optimizer_options *options)
{
    switch (options->kind) {
    case FSDP_SGD:
        return 0.0;
    case FSDP_SGD_MOMENTUM:
        return options->momentum;
    case FSDP_LION:
        return options->beta2;
    case FSDP_ADAM:
    case FSDP_ADAMW:
        return fmax(options->beta1, options->beta2);
    case FSDP_CUSTOM: /* have no bf16 */
    case FSDP_MUON:
        return 0.0;
    }
    return 0.0;
}

/* Half the distance from one bf16 to the next is 1/512 to 1/256 of it: what moves it by less is lost. */
static void warn_of_moments_that_stand_still(const fsdp_context *ctx, const fsdp_optimizer_options *options)
{
    const double beta = slowest_beta(options);

    if (ctx->rank == 0 && options->moment_dtype == FSDP_BF16 && 1.0 - beta < 1.0 / 256.0) {
        fsdpi_log(
            ctx, FSDP_LOG_WARN,
            "fsdp_optimizer_create: moments in bf16 keep %.9g of themselves a step, and rounding takes back a decay "
            "below 1/256; use 0.99 or less, or moments in f32",
            beta);
    }
}

static size_t scratch_bytes(const fsdp_optimizer *optimizer)
{
    fsdp_model_group as = fsdpi_group_of_options(&optimizer->options);

    as.granularity = fsdpi_granularity(optimizer->model, optimizer->group);
    return fsdpi_optimizer_scratch(optimizer->model, &optimizer->model->plan, optimizer->group, &as);
}

static size_t moments_bytes(const fsdp_optimizer *optimizer, const fsdpi_flat *flat)
{
    return fsdpi_updates(optimizer, flat)
               ? fsdpi_moment_bytes(optimizer->options.moment_dtype, fsdpi_held_elements(flat))
               : 0;
}

static void release_states(fsdp_optimizer *optimizer)
{
    size_t u = 0;

    if (optimizer == NULL) {
        return;
    }
    for (const fsdpi_flat *flat = optimizer->model->flats; flat != NULL; flat = flat->next, u++) {
        for (size_t k = 0; k < FSDPI_MOST_STATES; k++) {
            fsdpi_home_free(optimizer->model, fsdpi_home_of_state(optimizer->model), FSDP_MEMORY_OPTIMIZER,
                            optimizer->flats[u].moments[k], moments_bytes(optimizer, flat));
        }
    }
    fsdpi_home_free(optimizer->model, fsdpi_home_of_elements(optimizer->model), FSDP_MEMORY_OPTIMIZER,
                    optimizer->scratch, scratch_bytes(optimizer));
    optimizer->by->close(optimizer);
    fsdpi_free(optimizer->model->ctx, FSDP_MEMORY_BOOKKEEPING, optimizer, optimizer_bytes(&optimizer->model->plan));
}

/* In the allocation of the optimizer, behind its flat parameters: room for the groups, then the group of each tensor. */
static void lay_out_groups(fsdp_optimizer *optimizer)
{
    const fsdp_model *model = optimizer->model;
    size_t            u     = 0;

    optimizer->groups = (fsdpi_group *)(void *)(optimizer->flats + model->plan.n_flats);
    size_t *group     = (size_t *)(void *)(optimizer->groups + model->plan.n_tensors);
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next, u++) {
        optimizer->flats[u].group = group;
        group += flat->n_tensors;
    }
}

/* The program's names are its own from here on. */
static void name_states(fsdp_optimizer *optimizer)
{
    const char *const *names = optimizer->options.state_names;

    for (size_t k = 0; k < optimizer->options.n_states; k++) {
        if (names != NULL) {
            (void)snprintf(optimizer->state_names[k], FSDPI_STATE_NAME_BYTES, "%s", names[k]);
        } else {
            (void)snprintf(optimizer->state_names[k], FSDPI_STATE_NAME_BYTES, "state_%zu", k);
        }
    }
    optimizer->options.state_names = NULL;
}

/* NULL, with what could be allocated released again, where memory is short. */
static fsdp_optimizer *allocate_optimizer(fsdp_model *model, const fsdp_optimizer_options *options,
                                          const fsdpi_tensor_group *group)
{
    const size_t    n_states = fsdpi_states_of(options);
    fsdp_optimizer *made     = fsdpi_alloc(model->ctx, FSDP_MEMORY_BOOKKEEPING, optimizer_bytes(&model->plan));
    bool            complete = made != NULL;
    size_t          u        = 0;

    if (!complete) {
        return NULL;
    }
    made->model         = model;
    made->options       = *options;
    made->group         = group;
    made->options.group = group != NULL ? group->pattern : NULL;
    made->by            = fsdpi_is_on_device(model) ? &fsdpi_optimizer_device : &fsdpi_optimizer_host;
    name_states(made);
    lay_out_groups(made);
    for (const fsdpi_flat *flat = model->flats; flat != NULL && complete; flat = flat->next, u++) {
        for (size_t k = 0; k < n_states && complete; k++) {
            made->flats[u].moments[k] =
                fsdpi_home_alloc(model, fsdpi_home_of_state(model), FSDP_MEMORY_OPTIMIZER, moments_bytes(made, flat));
            complete = made->flats[u].moments[k] != NULL || moments_bytes(made, flat) == 0;
        }
    }
    if (complete && scratch_bytes(made) > 0) {
        made->scratch =
            fsdpi_home_alloc(model, fsdpi_home_of_elements(model), FSDP_MEMORY_OPTIMIZER, scratch_bytes(made));
        complete = made->scratch != NULL;
    }
    if (!complete || made->by->open(made) != FSDP_OK) {
        release_states(made);
        return NULL;
    }
    return made;
}

static void describe_options(const fsdp_optimizer_options *o, char *text, size_t size)
{
    (void)snprintf(
        text, size,
        "kind %d, moments %s, lr %.9g, weight_decay %.9g, betas %.9g %.9g, eps %.9g, momentum %.9g%s%s%.100s, "
        "%zu states, scale %.9g",
        (int)o->kind, fsdp_dtype_name(o->moment_dtype), o->lr, o->weight_decay, o->beta1, o->beta2, o->eps, o->momentum,
        o->nesterov ? ", nesterov" : "", o->group != NULL ? ", group " : "", o->group != NULL ? o->group : "",
        o->n_states, o->muon_scale);
}

/* A trainable one of a group, NULL for none, for an error; "" if there is none. */
static const char *first_tensor(const fsdp_model *model, const fsdpi_tensor_group *group)
{
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (!flat->frozen && flat->group == group) {
            return flat->tensors[0]->name;
        }
    }
    return "";
}

/* The group of an optimizer that is to be made; NULL for none. */
static fsdp_status find_group(const fsdp_model *model, const fsdp_optimizer_options *options,
                              const fsdpi_tensor_group **group)
{
    *group = options->group != NULL ? fsdpi_group_of_pattern(model, options->group) : NULL;
    if (options->group != NULL && *group == NULL) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_ARG,
                                   "fsdp_optimizer_options.group is '%.100s', which is no group of the model; give a "
                                   "pattern as it was given to fsdp_model_add_group",
                                   options->group);
    }
    if (options->group == NULL && model->tensor_groups != NULL && model->plan.plain == 0 &&
        model->plane.n_stages == 1) {
        return fsdpi_fail_together(
            model->ctx, FSDP_ERR_ARG,
            "fsdp_optimizer_options.group is NULL, and every trainable tensor belongs to a group; "
            "set it to the first, '%.100s', or another",
            model->tensor_groups->pattern);
    }
    for (const fsdp_optimizer *other = model->optimizers; other != NULL; other = other->next) {
        if (other->group == *group) {
            return fsdpi_fail_together(
                model->ctx, FSDP_ERR_STATE,
                "fsdp_optimizer_create: tensor '%.100s' has an optimizer already, as all of %s%.100s%s; destroy that "
                "first, or give tensors that this one is to update a group: see fsdp_model_add_group",
                first_tensor(model, *group), *group != NULL ? "group '" : "the model's that belong to no group",
                *group != NULL ? (*group)->pattern : "", *group != NULL ? "'" : "");
        }
    }
    return FSDP_OK;
}

/* Of moments in 8 bits: whether no slice ends within one. */
static fsdp_status check_blocks(const fsdp_model *model, const fsdpi_tensor_group *group)
{
    const size_t granularity = fsdpi_granularity(model, group);

    if (fsdpi_is_on_device(model)) {
        return fsdpi_fail_together(
            model->ctx, FSDP_ERR_UNSUPPORTED,
            "fsdp_optimizer_create: moments in 8 bits in a model on a GPU; use FSDP_BF16 or FSDP_F32");
    }
    if (granularity == FSDP_GRANULARITY_FLAT || granularity % FSDPI_DYNAMIC_BLOCK != 0) {
        return fsdpi_fail_together(
            model->ctx, FSDP_ERR_ARG,
            "fsdp_optimizer_options.moment_dtype is u8, and the model was laid out for another; set "
            "%s.moment_dtype to FSDP_U8 too, before fsdp_model_commit",
            group != NULL ? "fsdp_model_group" : "fsdp_model_options");
    }
    return FSDP_OK;
}

/* Whether a function of the program's can be given what it is to be given in this model. */
static fsdp_status check_place_of_custom(const fsdp_model *model, const fsdp_optimizer_options *options,
                                         const fsdpi_tensor_group *group)
{
    if (options->moment_dtype != FSDP_F32 && options->moment_dtype != model->master_dtype) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_ARG,
                                   "fsdp_optimizer_options.moment_dtype is %s, and masters are in %s; use FSDP_F32",
                                   fsdp_dtype_name(options->moment_dtype), fsdp_dtype_name(model->master_dtype));
    }
    if (fsdpi_is_offloaded(model) &&
        (fsdpi_granularity(model, group) != FSDP_GRANULARITY_FLAT || options->moment_dtype != FSDP_F32)) {
        return fsdpi_fail_together(
            model->ctx, FSDP_ERR_UNSUPPORTED,
            "fsdp_optimizer_create: FSDP_CUSTOM for a group with a granularity, or with states in "
            "f64, in a model that is offloaded, whose pieces end anywhere; use FSDP_ON_DEVICE");
    }
    return FSDP_OK;
}

static fsdp_status check_creation(fsdp_model *model, const fsdp_optimizer_options *options,
                                  fsdp_optimizer_options *chosen, const fsdpi_tensor_group **group,
                                  fsdp_optimizer *const *optimizer)
{
    if (options == NULL || optimizer == NULL) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_ARG, "fsdp_optimizer_create: the %s NULL",
                                   options == NULL ? "options are" : "place for the optimizer is");
    }
    if (!model->committed) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_STATE,
                                   "fsdp_optimizer_create: the model is not committed; call "
                                   "fsdp_model_commit first");
    }
    if (model->lbfgs != NULL) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_STATE,
                                   "fsdp_optimizer_create: the model has L-BFGS, which updates all of its trainable "
                                   "tensors; call fsdp_lbfgs_destroy first");
    }
    FSDP_TRY(fsdpi_optimizer_options_take(model->ctx, options, chosen));
    FSDP_TRY(check_options(model->ctx, chosen, model->master_dtype));
    FSDP_TRY(find_group(model, chosen, group));
    FSDP_TRY(chosen->moment_dtype == FSDP_U8 ? check_blocks(model, *group) : FSDP_OK);
    if (chosen->kind == FSDP_MUON) {
        return fsdpi_muon_check(model, *group, chosen);
    }
    return chosen->kind == FSDP_CUSTOM ? check_place_of_custom(model, chosen, *group) : FSDP_OK;
}

fsdp_status fsdp_optimizer_create(fsdp_model *model, const fsdp_optimizer_options *options, fsdp_optimizer **optimizer)
{
    char                      label[FSDPI_DETAIL_BYTES] = "";
    fsdp_optimizer           *made                      = NULL;
    fsdp_optimizer_options    chosen                    = {0};
    const fsdpi_tensor_group *group                     = NULL;

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_optimizer_create: the model is NULL; pass one from fsdp_model_create");
    }
    fsdp_status status = check_creation(model, options, &chosen, &group, optimizer);
    if (status == FSDP_OK) {
        *optimizer = NULL;
        describe_options(&chosen, label, sizeof label);
        made   = allocate_optimizer(model, &chosen, group);
        status = made != NULL ? FSDP_OK : FSDP_ERR_MEMORY;
    }
    status = fsdpi_agree(model->ctx, "fsdp_optimizer_create", label, 0, status, false);
    status = fsdpi_plane_follow(model, "fsdp_optimizer_create", status);
    if (status != FSDP_OK || made == NULL) {
        release_states(made);
        return status;
    }
    made->next        = model->optimizers;
    model->optimizers = made;
    *optimizer        = made;
    warn_of_moments_that_stand_still(model->ctx, &chosen);
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

const fsdp_model *fsdpi_optimizer_model(const fsdp_optimizer *optimizer)
{
    return optimizer->model;
}

size_t fsdpi_count_optimizers(const fsdp_model *model)
{
    size_t n = 0;

    for (const fsdp_optimizer *optimizer = model->optimizers; optimizer != NULL; optimizer = optimizer->next) {
        n++;
    }
    return n;
}

void fsdpi_optimizers_release(fsdp_model *model)
{
    while (model->optimizers != NULL) {
        fsdp_optimizer_destroy(model->optimizers);
    }
}

static void clear_states(fsdp_optimizer *optimizer)
{
    size_t u = 0;

    for (const fsdpi_flat *flat = optimizer->model->flats; flat != NULL; flat = flat->next, u++) {
        for (size_t k = 0; k < FSDPI_MOST_STATES; k++) {
            if (optimizer->flats[u].moments[k] != NULL) {
                fsdpi_compute_clear(optimizer->model, optimizer->flats[u].moments[k], moments_bytes(optimizer, flat));
            }
        }
    }
}

fsdp_status fsdp_optimizer_reset(fsdp_optimizer *optimizer)
{
    static const char function[] = "fsdp_optimizer_reset";

    if (optimizer == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the optimizer is NULL", function);
    }
    fsdp_model *model = optimizer->model;
    FSDP_TRY(fsdpi_model_agree(model, function, optimizer->group != NULL ? optimizer->group->pattern : NULL, 0,
                               fsdpi_between_passes(model, function), true));
    if (fsdpi_is_offloaded(model)) {
        fsdpi_compute_finish(model); /* the last step may still be copying states out */
    }
    clear_states(optimizer);
    optimizer->steps   = 0;
    optimizer->spoiled = false;
    return fsdpi_step_fail(model, fsdpi_compute_status(model));
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

fsdp_status fsdp_optimizer_set_lr(fsdp_optimizer *optimizer, double lr)
{
    if (optimizer == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_optimizer_set_lr: the optimizer is NULL");
    }
    if (!fsdpi_is_rate(lr)) {
        return fsdpi_fail(optimizer->model->ctx, FSDP_ERR_ARG, "fsdp_optimizer_set_lr: %g; it must be 0 or more", lr);
    }
    optimizer->options.lr = lr;
    return FSDP_OK;
}

size_t fsdp_optimizer_steps(const fsdp_optimizer *optimizer)
{
    return optimizer != NULL ? optimizer->steps : 0;
}

static fsdp_status check_step(const fsdp_optimizer *optimizer)
{
    FSDP_TRY(fsdpi_between_passes(optimizer->model, "fsdp_optimizer_step"));
    FSDP_TRY(fsdpi_check_none_local(optimizer->model, "fsdp_optimizer_step"));
    if (optimizer->spoiled) {
        return fsdpi_fail_together(
            optimizer->model->ctx, FSDP_ERR_STATE,
            "fsdp_optimizer_step: the optimizer's states are undefined since an update has failed; "
            "load a checkpoint into it, or call fsdp_optimizer_reset");
    }
    for (fsdpi_flat *flat = optimizer->model->flats; flat != NULL; flat = flat->next) {
        if (!flat->has_gradient && fsdpi_updates(optimizer, flat) &&
            optimizer->model->options.unused == FSDP_UNUSED_ERROR) {
            return fsdpi_fail(optimizer->model->ctx, FSDP_ERR_STATE,
                              "fsdp_optimizer_step: unit '%s' has no gradient "
                              "since the last step; run its backward pass first, or say with "
                              "fsdp_model_options.unused what becomes of its parameters",
                              flat->name);
        }
        FSDP_TRY(fsdpi_masters_check(flat, "fsdp_optimizer_step"));
    }
    return FSDP_OK;
}

void fsdpi_optimizer_forget_gradients(const fsdp_optimizer *optimizer)
{
    for (fsdpi_flat *flat = optimizer->model->flats; flat != NULL; flat = flat->next) {
        if (fsdpi_updates(optimizer, flat) || fsdpi_optimizer_of(flat) == NULL) {
            fsdpi_gradient_forget(flat);
        }
    }
    fsdpi_order_forget(optimizer->model);
    fsdpi_replay_step(optimizer->model);
}

/* What no pass has used counts as zero, where the model's options say so. */
static void clear_unused(const fsdp_optimizer *optimizer)
{
    fsdp_model *model = optimizer->model;

    for (fsdpi_flat *flat = model->flats; flat != NULL && model->options.unused == FSDP_UNUSED_ZERO;
         flat             = flat->next) {
        if (!flat->has_gradient && fsdpi_updates(optimizer, flat)) {
            fsdpi_compute_clear(model, flat->gradient, fsdpi_held_elements(flat) * fsdpi_master_width(model));
            flat->has_gradient = true;
        }
    }
}

/* A function of the program's may have failed on any rank. */
static fsdp_status update(fsdp_optimizer *optimizer)
{
    optimizer->updated       = 0;
    const fsdp_status status = optimizer->by->update(optimizer);

    if (optimizer->options.kind != FSDP_CUSTOM) {
        return status;
    }
    const fsdp_status all = fsdpi_model_agree(optimizer->model, "fsdp_optimizer_step", "updates", 0, status, true);
    if (all != FSDP_OK) {
        fsdpi_custom_take_back(optimizer);
        optimizer->spoiled = true;
    }
    return all;
}

fsdp_status fsdp_optimizer_step(fsdp_optimizer *optimizer)
{
    char rates[FSDPI_DETAIL_BYTES / 2];
    char label[FSDPI_DETAIL_BYTES];

    if (optimizer == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_optimizer_step: the optimizer is NULL");
    }
    const uint64_t hash = fsdpi_describe_rates(optimizer, rates, sizeof rates);
    (void)snprintf(label, sizeof label, "step %zu%s%.60s, units in order %08" PRIx32 ", %s", optimizer->steps + 1,
                   optimizer->group != NULL ? " of group " : "",
                   optimizer->group != NULL ? optimizer->group->pattern : "", (uint32_t)optimizer->model->order, rates);
    fsdp_status status = check_step(optimizer);
    if (!fsdpi_gradients_divide_first(optimizer->model, "fsdp_optimizer_step", &status)) {
        return status;
    }
    FSDP_TRY(fsdpi_model_agree(optimizer->model, "fsdp_optimizer_step", label, hash, status, false));
    fsdpi_gather_drop(optimizer->model);
    clear_unused(optimizer);
    status = update(optimizer);
    fsdpi_optimizer_forget_gradients(optimizer);
    if (status != FSDP_OK) {
        (void)fsdpi_gather_refresh(optimizer->model, true);
        return status;
    }
    optimizer->model->error = FSDP_OK;
    optimizer->steps++;
    return fsdpi_gather_refresh(optimizer->model, !fsdpi_is_offloaded(optimizer->model));
}
