#include "shard/schedule/failed_step.h"

#include <stdio.h>

#include "shard/state/plane.h"

/* ---- failing ----------------------------------------------------------------------------------------------------- */

fsdp_status fsdpi_step_tell(fsdp_model *model, fsdp_status status)
{
    if (status != FSDP_OK && !model->failed) {
        model->error = status;
        (void)snprintf(model->error_text, sizeof model->error_text, "%.*s", (int)sizeof model->error_text - 1,
                       fsdpi_error_recorded(model->ctx));
    }
    return status;
}

fsdp_status fsdpi_step_fail(fsdp_model *model, fsdp_status status)
{
    if (model->committed) {
        (void)fsdpi_step_tell(model, status);
        model->failed = model->failed || status != FSDP_OK;
    }
    return status;
}

fsdp_status fsdpi_step_check(const fsdp_model *model, const char *function)
{
    return model->failed ? fsdpi_fail(model->ctx, FSDP_ERR_STATE,
                                      "%s: this step has failed; call fsdp_model_zero_grad on every rank. It began "
                                      "with: %s",
                                      function, model->error_text)
                         : FSDP_OK;
}

/* ---- agreeing ---------------------------------------------------------------------------------------------------- */

static fsdp_status agree_in(fsdp_model *model, fsdp_context *part, const char *function, bool forced)
{
    if (part == NULL || part == model->ctx) {
        return FSDP_OK;
    }
    const fsdp_status status = fsdpi_agree(part, function, NULL, 0, FSDP_OK, forced);
    fsdpi_error_hand_on(part, model->ctx, status);
    return fsdpi_step_fail(model, status);
}

fsdp_status fsdpi_groups_agree(fsdp_model *model, const char *function, bool forced)
{
    FSDP_TRY(agree_in(model, model->shards, function, forced));
    return agree_in(model, model->replicas, function, forced);
}

fsdp_status fsdpi_step_agree(fsdp_model *model, const char *function, const char *label, uint64_t salt,
                             fsdp_status status, bool forced)
{
    if (model->failed) {
        return status != FSDP_OK ? status : fsdpi_step_check(model, function);
    }
    FSDP_TRY(fsdpi_groups_agree(model, function, forced));
    return fsdpi_step_tell(model, fsdpi_agree(model->ctx, function, label, salt, status, forced));
}

fsdp_status fsdpi_model_agree(fsdp_model *model, const char *function, const char *label, uint64_t salt,
                              fsdp_status status, bool forced)
{
    status = fsdpi_step_agree(model, function, label, salt, status, forced);
    return model->failed ? status : fsdpi_step_tell(model, fsdpi_plane_follow(model, function, status));
}
