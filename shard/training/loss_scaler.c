#include "fsdp/loss_scaler.h"

#include <math.h>
#include <stdio.h>

#include "lib/base/options.h"
#include "shard/hooks/hook.h"
#include "shard/optimizer/optimizer.h"
#include "shard/schedule/between_passes.h"
#include "shard/schedule/divisor.h"
#include "shard/schedule/failed_step.h"
#include "shard/schedule/grad_norm.h"
#include "shard/schedule/reduction.h"
#include "shard/state/plane.h"
#include "shard/storage/compute.h"

/* The element type of the narrowest range among those that parameters are gathered and gradients reduced in. */
static fsdp_dtype lowest_dtype(const fsdp_model *model)
{
    const fsdp_model_options *o = &model->options;

    return o->param_dtype == FSDP_F16 || o->reduce_dtype == FSDP_F16     ? FSDP_F16
           : o->param_dtype == FSDP_BF16 || o->reduce_dtype == FSDP_BF16 ? FSDP_BF16
                                                                         : FSDP_F32;
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static fsdp_status out_of_range(fsdp_context *ctx, const char *field, double value, const char *range)
{
    return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_loss_scaler_options.%s is %g; it must be %s", field, value,
                               range);
}

/* NaN is in no range. */
static bool lies_between(double value, double low, double high)
{
    return value >= low && value <= high;
}

static fsdp_status check_options(fsdp_context *ctx, const fsdp_loss_scaler_options *o)
{
    if (!lies_between(o->min_scale, 0x1p-126, 0x1p126)) {
        return out_of_range(ctx, "min_scale", o->min_scale, "from 2^-126 to 2^126");
    }
    if (!lies_between(o->max_scale, o->min_scale, 0x1p126)) {
        return out_of_range(ctx, "max_scale", o->max_scale, "from min_scale to 2^126");
    }
    if (!lies_between(o->initial_scale, o->min_scale, o->max_scale)) {
        return out_of_range(ctx, "initial_scale", o->initial_scale, "from min_scale to max_scale");
    }
    if (!(isfinite(o->growth_factor) && o->growth_factor > 1.0)) {
        return out_of_range(ctx, "growth_factor", o->growth_factor, "above 1");
    }
    if (!(o->backoff_factor > 0.0 && o->backoff_factor < 1.0)) {
        return out_of_range(ctx, "backoff_factor", o->backoff_factor, "above 0 and below 1");
    }
    return o->growth_interval > 0 ? FSDP_OK : out_of_range(ctx, "growth_interval", 0.0, "at least 1");
}

static fsdp_status check_creation(fsdp_model *model, const fsdp_loss_scaler_options *options,
                                  fsdp_loss_scaler *const *scaler)
{
    if (scaler == NULL) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_ARG,
                                   "fsdp_loss_scaler_create: the place for the loss scaler is NULL");
    }
    if (!model->committed) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_STATE,
                                   "fsdp_loss_scaler_create: the model is not committed; call fsdp_model_commit first");
    }
    if (model->loss_scaler != NULL) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_STATE,
                                   "fsdp_loss_scaler_create: the model has a loss scaler; destroy that first");
    }
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (flat->checked_passes > 0) {
            return fsdpi_fail_together(
                model->ctx, FSDP_ERR_STATE,
                "fsdp_loss_scaler_create: another loss scaler has unscaled the gradients of unit '%s'; take the "
                "step with it, or call fsdp_model_zero_grad",
                flat->name);
        }
    }
    if (model->lbfgs != NULL) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_UNSUPPORTED,
                                   "fsdp_loss_scaler_create: the model has L-BFGS, which needs gradients as they are; "
                                   "call fsdp_lbfgs_destroy first");
    }
    if (model->master_dtype == FSDP_F64) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_UNSUPPORTED,
                                   "fsdp_loss_scaler_create: the model's masters are in f64, and loss scaling is for "
                                   "gradients in f16; leave it out, or set param_dtype to FSDP_F16");
    }
    FSDP_TRY(check_options(model->ctx, options));
    if (lowest_dtype(model) != FSDP_F16 && !options->allow_any_dtype) {
        return fsdpi_fail_together(
            model->ctx, FSDP_ERR_UNSUPPORTED,
            "fsdp_loss_scaler_create: the model's lowest precision is %s, which needs no loss scaling; "
            "leave it out, or set allow_any_dtype where gradients are computed in f16",
            fsdp_dtype_name(lowest_dtype(model)));
    }
    return FSDP_OK;
}

static void describe_options(const fsdp_loss_scaler_options *o, char *text, size_t size)
{
    (void)snprintf(text, size, "scale %.17g in %.17g to %.17g, factors %.17g %.17g, interval %zu%s", o->initial_scale,
                   o->min_scale, o->max_scale, o->growth_factor, o->backoff_factor, o->growth_interval,
                   o->allow_any_dtype ? ", any dtype" : "");
}

void fsdp_loss_scaler_options_init_size(fsdp_loss_scaler_options *options, size_t size)
{
    static const fsdp_loss_scaler_options defaults = FSDP_LOSS_SCALER_OPTIONS_DEFAULT;

    fsdpi_options_give(&defaults, sizeof defaults, options, size);
}

fsdp_status fsdp_loss_scaler_create(fsdp_model *model, const fsdp_loss_scaler_options *options,
                                    fsdp_loss_scaler **scaler)
{
    fsdp_loss_scaler_options chosen = FSDP_LOSS_SCALER_OPTIONS_DEFAULT;
    char                     label[FSDPI_DETAIL_BYTES];

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_loss_scaler_create: the model is NULL; pass one from fsdp_model_create");
    }
    fsdp_status status = fsdpi_options_take(model->ctx, "fsdp_loss_scaler_options", options, &chosen, sizeof chosen);
    status             = status == FSDP_OK ? check_creation(model, &chosen, scaler) : status;
    if (status == FSDP_OK) {
        *scaler = NULL;
    }
    describe_options(&chosen, label, sizeof label);
    FSDP_TRY(fsdpi_plane_follow(model, "fsdp_loss_scaler_create",
                                fsdpi_agree(model->ctx, "fsdp_loss_scaler_create", label, 0, status, false)));
    model->loss_scaler = &model->loss_scaler_room;
    *model->loss_scaler =
        (fsdp_loss_scaler){.model = model, .options = chosen, .state = {.scale = chosen.initial_scale}};
    *scaler = model->loss_scaler;
    return FSDP_OK;
}

void fsdp_loss_scaler_destroy(fsdp_loss_scaler *scaler)
{
    if (scaler != NULL) {
        scaler->model->loss_scaler = NULL;
    }
}

/* ---- state ------------------------------------------------------------------------------------------------------- */

double fsdp_loss_scaler_scale(const fsdp_loss_scaler *scaler)
{
    return scaler != NULL ? scaler->state.scale : 0.0;
}

fsdp_status fsdp_loss_scaler_get_state(const fsdp_loss_scaler *scaler, fsdp_loss_scaler_state *state)
{
    if (scaler == NULL || state == NULL) {
        return fsdpi_fail(scaler != NULL ? scaler->model->ctx : NULL, FSDP_ERR_ARG,
                          "fsdp_loss_scaler_get_state: the %s NULL",
                          scaler == NULL ? "loss scaler is" : "place for the state is");
    }
    *state = scaler->state;
    return FSDP_OK;
}

/* What a hook has kept of gradients of the old scale, it will add to some of the new one. */
static void set_scale(fsdp_loss_scaler *scaler, double scale)
{
    if (scale != scaler->state.scale) {
        fsdpi_hook_rescale(scaler->model->hook, scale / scaler->state.scale);
    }
    scaler->state.scale = scale;
}

fsdp_status fsdp_loss_scaler_set_state(fsdp_loss_scaler *scaler, const fsdp_loss_scaler_state *state)
{
    if (scaler == NULL || state == NULL) {
        return fsdpi_fail(scaler != NULL ? scaler->model->ctx : NULL, FSDP_ERR_ARG,
                          "fsdp_loss_scaler_set_state: the %s NULL", scaler == NULL ? "loss scaler is" : "state is");
    }
    if (!lies_between(state->scale, scaler->options.min_scale, scaler->options.max_scale)) {
        return fsdpi_fail(scaler->model->ctx, FSDP_ERR_ARG,
                          "fsdp_loss_scaler_set_state: a scale of %g; this loss scaler's lie from %g to %g",
                          state->scale, scaler->options.min_scale, scaler->options.max_scale);
    }
    if (fsdpi_has_gradients(scaler->model)) {
        return fsdpi_fail(
            scaler->model->ctx, FSDP_ERR_STATE,
            "fsdp_loss_scaler_set_state: gradients were computed under a scale of %g; take a step or call "
            "fsdp_model_zero_grad first",
            scaler->state.scale);
    }
    set_scale(scaler, state->scale);
    scaler->state = *state;
    return FSDP_OK;
}

/* ---- unscaling --------------------------------------------------------------------------------------------------- */

/* Whether all gradients there are have been looked at as they are now. */
static bool is_checked(const fsdp_model *model)
{
    bool checked = fsdpi_has_gradients(model);

    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        checked = checked && flat->checked_passes == flat->gradient_passes;
    }
    return checked;
}

static fsdp_status check_scaled_gradients(fsdp_model *model, const char *function)
{
    FSDP_TRY(fsdpi_check_gradients(model, function));
    if (is_checked(model)) {
        return FSDP_OK;
    }
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (flat->checked_passes > 0) {
            return fsdpi_fail(
                model->ctx, FSDP_ERR_STATE,
                "%s: gradients of unit '%s' were unscaled before the last backward pass; unscale after all "
                "of them, and call fsdp_model_zero_grad now",
                function, flat->name);
        }
    }
    return FSDP_OK;
}

/* NaN and infinity show in the largest magnitude. */
static fsdp_status look_at_gradients(const fsdp_loss_scaler *scaler, bool *finite)
{
    double most = 0.0;

    *finite = scaler->finite;
    if (!is_checked(scaler->model)) {
        FSDP_TRY(fsdpi_absolute_maximum(scaler->model, &most));
        *finite = isfinite(most);
    }
    return FSDP_OK;
}

/* One word over all ranks carries both verdicts: whether the call is good, and whether all gradients are finite. */
static fsdp_status agree_on_finite(const fsdp_loss_scaler *scaler, const char *function, fsdp_status status,
                                   bool *finite)
{
    fsdp_model *model = scaler->model;
    bool        good  = true;
    char        label[FSDPI_DETAIL_BYTES];

    status                  = status == FSDP_OK ? look_at_gradients(scaler, &good) : status;
    int32_t       overflows = status == FSDP_OK && !good;
    fsdp_context *all       = model->plane.ctx; /* of all stages and positions */

    if (model->failed) {
        return status;
    }
    FSDP_TRY(fsdpi_groups_agree(model, function, false));
    (void)snprintf(label, sizeof label, "scale %.17g, %zu clean and %zu skipped steps", scaler->state.scale,
                   scaler->state.clean_steps, scaler->state.skipped_steps);
    const fsdpi_purpose purpose = {.name = function, .label = label, .status = status};
    fsdpi_error_hand_on(model->ctx, all, status);
    status = fsdpi_allreduce(all, &purpose, FSDP_IN_PLACE, &overflows, 1, FSDP_I32, FSDP_MAX);
    fsdpi_error_hand_on(all, model->ctx, status);
    FSDP_TRY(fsdpi_step_tell(model, status));
    *finite = overflows == 0;
    return FSDP_OK;
}

/* Unscales unless that has been done. */
static fsdp_status unscale(fsdp_loss_scaler *scaler, const char *function, fsdp_status status)
{
    fsdp_model *model  = scaler->model;
    bool        finite = false;

    if (!fsdpi_gradients_divide_first(model, function, &status)) {
        return status;
    }
    FSDP_TRY(agree_on_finite(scaler, function, status, &finite));
    if (finite && !is_checked(model)) {
        fsdpi_scale_gradients(model, 1.0 / scaler->state.scale);
    }
    scaler->finite = finite;
    for (fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        flat->checked_passes = flat->gradient_passes;
    }
    return fsdpi_step_fail(model, fsdpi_compute_status(model));
}

static fsdp_status check_unscale(fsdp_model *model)
{
    FSDP_TRY(check_scaled_gradients(model, "fsdp_loss_scaler_unscale"));
    return is_checked(model) ? fsdpi_fail(model->ctx, FSDP_ERR_STATE,
                                          "fsdp_loss_scaler_unscale: the gradients have been unscaled since the last "
                                          "step; call it once, after all backward passes")
                             : FSDP_OK;
}

fsdp_status fsdp_loss_scaler_unscale(fsdp_loss_scaler *scaler, int *finite)
{
    if (scaler == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_loss_scaler_unscale: the loss scaler is NULL");
    }
    FSDP_TRY(unscale(scaler, "fsdp_loss_scaler_unscale", check_unscale(scaler->model)));
    if (finite != NULL) {
        *finite = scaler->finite;
    }
    return FSDP_OK;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static fsdp_status check_step(fsdp_model *model, const fsdp_optimizer *optimizer)
{
    FSDP_TRY(fsdpi_gradients_settle(model, "fsdp_loss_scaler_step"));
    if (optimizer == NULL || fsdpi_optimizer_model(optimizer) != model) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                          "fsdp_loss_scaler_step: the optimizer is %s; pass one of the loss scaler's own model",
                          optimizer == NULL ? "NULL" : "another model's");
    }
    return check_scaled_gradients(model, "fsdp_loss_scaler_step");
}

static void back_off(fsdp_loss_scaler *scaler)
{
    fsdp_loss_scaler_state *state = &scaler->state;

    set_scale(scaler, fmax(state->scale * scaler->options.backoff_factor, scaler->options.min_scale));
    state->clean_steps = 0;
    state->skipped_steps++;
}

static void grow(fsdp_loss_scaler *scaler)
{
    fsdp_loss_scaler_state *state = &scaler->state;

    state->clean_steps++;
    if (state->clean_steps >= scaler->options.growth_interval) {
        set_scale(scaler, fmin(state->scale * scaler->options.growth_factor, scaler->options.max_scale));
        state->clean_steps = 0;
    }
}

static void update_scale(fsdp_loss_scaler *scaler)
{
    if (scaler->finite) {
        grow(scaler);
    } else {
        back_off(scaler);
    }
}

fsdp_status fsdp_loss_scaler_step(fsdp_loss_scaler *scaler, fsdp_optimizer *optimizer, int *stepped)
{
    if (scaler == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_loss_scaler_step: the loss scaler is NULL");
    }
    FSDP_TRY(unscale(scaler, "fsdp_loss_scaler_step", check_step(scaler->model, optimizer)));
    if (scaler->finite) {
        FSDP_TRY(fsdp_optimizer_step(optimizer));
    } else {
        fsdpi_optimizer_forget_gradients(optimizer);
    }
    if (!fsdpi_has_gradients(scaler->model)) { /* else another optimizer has its step to take, under this scale */
        update_scale(scaler);
    }
    if (stepped != NULL) {
        *stepped = scaler->finite;
    }
    return FSDP_OK;
}
