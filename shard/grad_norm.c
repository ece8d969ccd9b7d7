#include <math.h>

#include "collectives/collectives.h"
#include "shard/model.h"

static fsdp_status check_clip(fsdp_model *model, double max_norm)
{
    bool any = false;

    if (!(max_norm > 0.0)) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG, "fsdp_clip_grad_norm: max_norm is %g; it must be above 0",
                          max_norm);
    }
    FSDP_TRY(fsdpi_between_passes(model, "fsdp_clip_grad_norm"));
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        any = any || unit->has_gradient;
    }
    return any ? FSDP_OK
               : fsdpi_fail(model->ctx, FSDP_ERR_STATE,
                            "fsdp_clip_grad_norm: there are no gradients since the last step; "
                            "run a backward pass first");
}

/* The squared norm of the `i`-th slice held of all units, in order of the units. */
static double squared_norm_of_slice(const fsdp_model *model, int i)
{
    double sum = 0.0;

    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        if (unit->has_gradient) {
            sum += model->ctx->kernels->squared_norm(fsdpi_slice_in(unit, unit->gradient, i), unit->layout.shard,
                                                     FSDP_F32);
        }
    }
    return sum;
}

/*
 * One number per slice, added in order of the slices: by the allreduce where ranks hold one each, here where each holds all.
 * A `status` that is not FSDP_OK only goes to the other ranks.
 */
static fsdp_status squared_norm(fsdp_model *model, fsdp_status status, double *sum)
{
    const fsdpi_purpose purpose = {.name = "fsdp_clip_grad_norm", .status = status};
    const fsdpi_held    held    = fsdpi_held_slices(model);
    fsdp_request       *request = NULL;

    *sum = status == FSDP_OK ? squared_norm_of_slice(model, 0) : 0.0;
    for (int i = 1; i < held.n && status == FSDP_OK; i++) {
        *sum += squared_norm_of_slice(model, i);
    }
    if (model->options.strategy == FSDP_NO_SHARD) {
        return fsdpi_agree(model->ctx, purpose.name, NULL, 0, status, false);
    }
    FSDP_TRY(fsdpi_iallreduce(model->ctx, &purpose, FSDP_IN_PLACE, sum, 1, FSDP_F64, FSDP_SUM, &request));
    return fsdp_wait(request);
}

static void scale_gradients(const fsdp_model *model, double factor)
{
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        if (unit->has_gradient) {
            model->ctx->kernels->scale(unit->gradient, factor,
                                       fsdpi_held_elements(&unit->layout, model->options.strategy), FSDP_F32);
        }
    }
}

fsdp_status fsdp_clip_grad_norm(fsdp_model *model, double max_norm, double *norm)
{
    double sum = 0.0;

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_clip_grad_norm: the model is NULL; pass one from fsdp_model_create");
    }
    FSDP_TRY(squared_norm(model, check_clip(model, max_norm), &sum));

    const double total  = sqrt(sum);
    const double factor = max_norm / (total + 1e-6);
    if (isfinite(total) && factor < 1.0) {
        scale_gradients(model, factor);
    }
    if (norm != NULL) {
        *norm = total;
    }
    return FSDP_OK;
}

fsdp_status fsdp_model_zero_grad(fsdp_model *model)
{
    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_model_zero_grad: the model is NULL; pass one from fsdp_model_create");
    }
    FSDP_TRY(fsdpi_between_passes(model, "fsdp_model_zero_grad"));
    for (fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        unit->has_gradient = false;
    }
    return FSDP_OK;
}
