#include "shard/hooks/model_hook.h"
#include "shard/schedule/between_passes.h"
#include "shard/schedule/failed_step.h"

static fsdp_status check_hook(fsdp_model *model, const fsdp_hook *hook)
{
    FSDP_TRY(fsdpi_between_passes(model, "fsdp_model_set_hook"));
    if (fsdpi_has_gradients(model)) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE,
                          "fsdp_model_set_hook: there are gradients since the last step; set it before the first pass");
    }
    if (hook == NULL) {
        return FSDP_OK;
    }
    if (model->lbfgs != NULL) {
        return fsdpi_fail(model->ctx, FSDP_ERR_UNSUPPORTED,
                          "fsdp_model_set_hook: the model has L-BFGS, which needs gradients as they are; call "
                          "fsdp_lbfgs_destroy first");
    }
    FSDP_TRY(fsdpi_hook_fits(model, hook, "fsdp_model_set_hook"));
    return fsdpi_hook_room_open(model);
}

fsdp_status fsdp_model_set_hook(fsdp_model *model, fsdp_hook *hook)
{
    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG,
                          "fsdp_model_set_hook: the model is NULL; pass one from fsdp_model_create");
    }
    const fsdp_status status = fsdpi_step_agree(model, "fsdp_model_set_hook", hook != NULL ? "a hook" : "none",
                                                hook != NULL ? hook->fingerprint : 0, check_hook(model, hook), true);
    if (status == FSDP_OK) {
        model->hook = hook;
    }
    if (model->hook == NULL) {
        fsdpi_hook_room_close(model);
    }
    return status;
}
