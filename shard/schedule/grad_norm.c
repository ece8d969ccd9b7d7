#include "shard/schedule/grad_norm.h"

#include <math.h>
#include <stdio.h>

#include "shard/schedule/between_passes.h"
#include "shard/schedule/failed_step.h"
#include "shard/schedule/reduction.h"
#include "shard/state/slices.h"
#include "shard/storage/compute.h"

/* ---- clipping by a norm ------------------------------------------------------------------------------------------ */

/* A norm as a number per slice and a way to join these. */
typedef struct norm_kind {
    const char *function;
    fsdpi_norm  of_slice;
    double (*join)(double a, double b);
    double (*finish)(double joined);
} norm_kind;

static double add(double a, double b)
{
    return a + b;
}

/* NaN wins over everything, infinity too. */
static double larger(double a, double b)
{
    return b > a || isnan(b) ? b : a;
}

static double unchanged(double joined)
{
    return joined;
}

static const norm_kind NORM_2   = {"fsdp_clip_grad_norm", FSDPI_SQUARED_NORM, add, sqrt};
static const norm_kind NORM_INF = {"fsdp_clip_grad_norm_inf", FSDPI_ABSOLUTE_MAXIMUM, larger, unchanged};

static fsdp_status check_clip(fsdp_model *model, const norm_kind *kind, double max_norm)
{
    FSDP_TRY(fsdpi_gradients_settle(model, kind->function)); /* before a bad argument ends it on this rank alone */
    if (!(max_norm > 0.0)) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG, "%s: max_norm is %g; it must be above 0", kind->function, max_norm);
    }
    FSDP_TRY(fsdpi_check_gradients(model, kind->function));
    return fsdpi_norms_measure(model, kind->of_slice);
}

/* Of the `i`-th slice held of all flat parameters, in their order. */
static double norm_of_slice(const fsdp_model *model, const norm_kind *kind, int i)
{
    double joined = 0.0;

    for (fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (flat->has_gradient) {
            joined = kind->join(joined, fsdpi_norm_of_slice(flat, kind->of_slice, i));
        }
    }
    return joined;
}

/*
 * One number per slice, joined in order of the slices whatever the strategy and the nodes: gathered where ranks hold one
 * each. A `status` that is not FSDP_OK only goes to the other ranks.
 */
static fsdp_status norm_of_model(fsdp_model *model, const norm_kind *kind, const char *label, fsdp_status status,
                                 double *norm)
{
    const fsdpi_purpose purpose = {.name = kind->function, .label = label, .status = status};
    const fsdpi_held    held    = fsdpi_held_slices(model);
    double             *norms   = model->slice_norms;
    double              joined  = 0.0;

    if (model->failed) {
        return status;
    }
    for (int i = 0; i < held.n && status == FSDP_OK; i++) {
        norms[held.first + i] = norm_of_slice(model, kind, i);
    }
    if (held.n == model->ctx->size || model->shards != model->ctx) {
        FSDP_TRY(fsdpi_step_agree(model, purpose.name, label, 0, status, false));
    }
    if (held.n < model->ctx->size) {
        FSDP_TRY(fsdpi_step_tell(
            model, fsdpi_allgather(model->shards, &purpose, FSDP_IN_PLACE, norms, (size_t)held.n, FSDP_F64)));
    }
    for (int i = 0; i < model->ctx->size; i++) {
        joined = kind->join(joined, norms[i]);
    }
    *norm = kind->finish(joined);
    return FSDP_OK;
}

void fsdpi_scale_gradients(fsdp_model *model, double factor)
{
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (flat->has_gradient) {
            fsdpi_compute_scale(model, flat->gradient, factor, fsdpi_held_elements(flat));
        }
    }
}

static fsdp_status clip(fsdp_model *model, const norm_kind *kind, double max_norm, double *norm)
{
    char   label[64];
    double total = 0.0;

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the model is NULL; pass one from fsdp_model_create", kind->function);
    }
    (void)snprintf(label, sizeof label, "max_norm %.17g", max_norm);
    FSDP_TRY(norm_of_model(model, kind, label, check_clip(model, kind, max_norm), &total));

    const double factor = max_norm / (total + 1e-6);
    if (isfinite(total) && factor < 1.0) {
        fsdpi_scale_gradients(model, factor);
    }
    if (norm != NULL) {
        *norm = total;
    }
    return fsdpi_step_fail(model, fsdpi_compute_status(model));
}

fsdp_status fsdp_clip_grad_norm(fsdp_model *model, double max_norm, double *norm)
{
    return clip(model, &NORM_2, max_norm, norm);
}

fsdp_status fsdp_clip_grad_norm_inf(fsdp_model *model, double max_norm, double *norm)
{
    return clip(model, &NORM_INF, max_norm, norm);
}

/* ---- clipping by value ------------------------------------------------------------------------------------------- */

static fsdp_status check_limit(fsdp_model *model, double limit)
{
    FSDP_TRY(fsdpi_gradients_settle(model, "fsdp_clip_grad_value"));
    if (!(limit >= 0.0)) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG, "fsdp_clip_grad_value: the limit is %g; it must be 0 or more",
                          limit);
    }
    return fsdpi_check_gradients(model, "fsdp_clip_grad_value");
}

static void clamp_held(const fsdpi_flat *flat, double limit)
{
    const fsdpi_held held = fsdpi_held_slices(flat->model);

    for (int i = 0; i < held.n; i++) {
        fsdpi_compute_clamp(flat->model, fsdpi_slice_in(flat, flat->gradient, i), limit, flat->layout.shard);
    }
}

fsdp_status fsdp_clip_grad_value(fsdp_model *model, double limit)
{
    char label[64];

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_clip_grad_value: the model is NULL; pass one from fsdp_model_create");
    }
    (void)snprintf(label, sizeof label, "limit %.17g", limit);
    FSDP_TRY(fsdpi_step_agree(model, "fsdp_clip_grad_value", label, 0, check_limit(model, limit), false));
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (flat->has_gradient) {
            clamp_held(flat, limit);
        }
    }
    return fsdpi_step_fail(model, fsdpi_compute_status(model));
}
