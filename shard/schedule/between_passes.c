#include "shard/schedule/between_passes.h"

#include "shard/schedule/reduction.h"

fsdp_status fsdpi_between_passes(fsdp_model *model, const char *function)
{
    if (!model->committed) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE, "%s: the model is not committed; call fsdp_model_commit first",
                          function);
    }
    FSDP_TRY(fsdpi_gradients_settle(model, function));
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        if (unit->pass != FSDPI_CLOSED) {
            return fsdpi_fail(model->ctx, FSDP_ERR_STATE, "%s: a %s pass of unit '%s' is open; end it first", function,
                              unit->pass == FSDPI_FORWARD ? "forward" : "backward", unit->name);
        }
    }
    return FSDP_OK;
}

bool fsdpi_has_gradients(const fsdp_model *model)
{
    bool any = false;

    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        any = any || flat->has_gradient || flat->has_local || flat->has_partial || flat->reducing > 0;
    }
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t m = 0; m < unit->n_members; m++) {
            any = any || unit->members[m].bucket != NULL;
        }
    }
    return any;
}

fsdp_status fsdpi_check_none_local(fsdp_model *model, const char *function)
{
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (flat->has_local) {
            return fsdpi_fail(
                model->ctx, FSDP_ERR_STATE,
                "%s: unit '%s' has gradients that only this rank has; call fsdp_model_set_sync with 1 before "
                "its last backward pass, or fsdp_model_zero_grad",
                function, flat->name);
        }
        if (flat->has_partial) {
            return fsdpi_fail(
                model->ctx, FSDP_ERR_STATE,
                "%s: unit '%s' has gradients that were reduced within the group only; call fsdp_model_set_sync with "
                "FSDP_SYNC_ALL before its last backward pass, or fsdp_model_zero_grad",
                function, flat->name);
        }
    }
    return FSDP_OK;
}

fsdp_status fsdpi_check_gradients(fsdp_model *model, const char *function)
{
    FSDP_TRY(fsdpi_between_passes(model, function));
    FSDP_TRY(fsdpi_check_none_local(model, function));
    return fsdpi_has_gradients(model) || model->options.unused != FSDP_UNUSED_ERROR ||
                   model->plan.padded_trainable == 0 /* and there never will be any */
               ? FSDP_OK
               : fsdpi_fail(model->ctx, FSDP_ERR_STATE,
                            "%s: there are no gradients since the last step; run a backward pass first", function);
}
