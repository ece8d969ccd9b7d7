/*
 * Gradients scaled by a number that the program knows.
 */
#include <math.h>
#include <stdio.h>

#include "fsdp/gradients.h"
#include "shard/schedule/between_passes.h"
#include "shard/schedule/divisor.h"
#include "shard/schedule/failed_step.h"
#include "shard/schedule/grad_norm.h"
#include "shard/schedule/reduction.h"
#include "shard/storage/compute.h"

/* That all ranks call it with the same numbers, and can. `status`: this rank's verdict. */
static fsdp_status agree(fsdp_model *model, const char *function, const char *label, fsdp_status status)
{
    status = status == FSDP_OK ? fsdpi_check_gradients(model, function) : status;
    return fsdpi_gradients_divide_first(model, function, &status)
               ? fsdpi_model_agree(model, function, label, 0, status, false)
               : status;
}

/* ---- by a factor ------------------------------------------------------------------------------------------------- */

static fsdp_status check_factor(fsdp_model *model, double factor)
{
    FSDP_TRY(fsdpi_gradients_settle(model, "fsdp_scale_grad"));
    return isfinite(factor)
               ? FSDP_OK
               : fsdpi_fail(model->ctx, FSDP_ERR_ARG, "fsdp_scale_grad: the factor is %g; it must be finite", factor);
}

fsdp_status fsdp_scale_grad(fsdp_model *model, double factor)
{
    char label[64];

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_scale_grad: the model is NULL; pass one from fsdp_model_create");
    }
    (void)snprintf(label, sizeof label, "factor %.17g", factor);
    FSDP_TRY(agree(model, "fsdp_scale_grad", label, check_factor(model, factor)));
    fsdpi_scale_gradients(model, factor);
    return fsdpi_step_fail(model, fsdpi_compute_status(model));
}

/* ---- to a norm --------------------------------------------------------------------------------------------------- */

static fsdp_status check_norms(fsdp_model *model, double max_norm, double norm)
{
    FSDP_TRY(fsdpi_gradients_settle(model, "fsdp_clip_grad_with_norm"));
    if (!(max_norm > 0.0) || norm < 0.0) {
        return fsdpi_fail(
            model->ctx, FSDP_ERR_ARG,
            "fsdp_clip_grad_with_norm: max_norm is %g and the norm %g; use numbers above 0, and 0 or more", max_norm,
            norm);
    }
    return FSDP_OK;
}

fsdp_status fsdp_clip_grad_with_norm(fsdp_model *model, double max_norm, double norm)
{
    char label[96];

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_clip_grad_with_norm: the model is NULL; pass one from fsdp_model_create");
    }
    (void)snprintf(label, sizeof label, "max_norm %.17g, norm %.17g", max_norm, norm);
    FSDP_TRY(agree(model, "fsdp_clip_grad_with_norm", label, check_norms(model, max_norm, norm)));
    fsdpi_clip_to(model, max_norm, norm);
    return fsdpi_step_fail(model, fsdpi_compute_status(model));
}
