#include "shard/schedule/divisor.h"

#include <math.h>
#include <stdio.h>

#include "fsdp/gradients.h"
#include "shard/schedule/between_passes.h"
#include "shard/schedule/failed_step.h"
#include "shard/state/factor.h"
#include "shard/state/plane.h"
#include "shard/state/slices.h"
#include "shard/storage/compute.h"

/* ---- applying it ------------------------------------------------------------------------------------------------- */

static bool is_undivided(const fsdpi_flat *flat)
{
    return flat->model->step_divisor > 0.0 && flat->has_gradient && !flat->divided;
}

bool fsdpi_has_undivided(const fsdp_model *model)
{
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (is_undivided(flat)) {
            return true;
        }
    }
    return false;
}

fsdp_status fsdpi_gradients_divide(fsdp_model *model, const char *function, fsdp_status status)
{
    const double factor =
        fsdpi_factor_for(model, model->step_divisor) / fsdpi_factor_for(model, model->options.gradient_divisor);
    char label[64];

    if (!fsdpi_has_undivided(model) && !fsdpi_has_plane(model)) {
        return status;
    }
    (void)snprintf(label, sizeof label, "gradient divisor %.17g", model->step_divisor);
    FSDP_TRY(fsdpi_step_agree(model, function, label, 0, status, false));
    for (fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (is_undivided(flat)) {
            fsdpi_compute_scale(model, flat->gradient, factor, fsdpi_held_elements(flat));
            flat->divided = true;
        }
    }
    return fsdpi_step_fail(model, fsdpi_compute_status(model));
}

bool fsdpi_gradients_divide_first(fsdp_model *model, const char *function, fsdp_status *status)
{
    const bool asks = fsdpi_has_undivided(model);

    *status = fsdpi_gradients_divide(model, function, *status);
    return *status == FSDP_OK || !asks || fsdpi_has_plane(model);
}

/* ---- setting it -------------------------------------------------------------------------------------------------- */

/* Passes behind the one that has been applied were multiplied accordingly. */
static fsdp_status check_undivided(const fsdp_model *model, const char *function)
{
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (flat->divided) {
            return fsdpi_fail(
                model->ctx, FSDP_ERR_STATE,
                "%s: the gradients of unit '%s' have been divided by %.17g already; set the divisor before "
                "the first call that looks at gradients, or call fsdp_model_zero_grad",
                function, flat->name, model->step_divisor);
        }
    }
    return FSDP_OK;
}

static fsdp_status check_divisor(const fsdp_model *model, double divisor)
{
    static const char function[] = "fsdp_model_set_gradient_divisor";

    if (!model->committed) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE, "%s: the model is not committed; call fsdp_model_commit first",
                          function);
    }
    if (!(isfinite(divisor) && divisor >= 0.0)) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                          "%s: the divisor is %g; it must be above 0, or 0 for that of the model's options", function,
                          divisor);
    }
    return check_undivided(model, function);
}

fsdp_status fsdp_model_set_gradient_divisor(fsdp_model *model, double divisor)
{
    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_model_set_gradient_divisor: the model is NULL; pass one from fsdp_model_create");
    }
    FSDP_TRY(check_divisor(model, divisor));
    model->step_divisor = divisor;
    return FSDP_OK;
}

static fsdp_status check_share(fsdp_model *model, const char *function, double share)
{
    FSDP_TRY(fsdpi_between_passes(model, function));
    if (!(isfinite(share) && share >= 0.0)) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG, "%s: this rank's share is %g; it must be 0 or more", function,
                          share);
    }
    return check_undivided(model, function);
}

fsdp_status fsdp_model_sum_gradient_divisor(fsdp_model *model, double share, double *sum)
{
    static const char function[] = "fsdp_model_sum_gradient_divisor";
    double            total      = share;

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the model is NULL; pass one from fsdp_model_create", function);
    }
    const fsdpi_purpose purpose = {.name = function, .label = "shares", .status = check_share(model, function, share)};
    if (model->failed) {
        return purpose.status;
    }
    FSDP_TRY(fsdpi_groups_agree(model, function, false));
    FSDP_TRY(
        fsdpi_step_tell(model, fsdpi_allreduce(model->ctx, &purpose, FSDP_IN_PLACE, &total, 1, FSDP_F64, FSDP_SUM)));
    model->step_divisor = total;
    if (sum != NULL) {
        *sum = total;
    }
    return FSDP_OK;
}
