#include "shard/schedule/model_sum.h"

#include "shard/schedule/failed_step.h"
#include "shard/state/plane.h"

bool fsdpi_model_is_spread(const fsdp_model *model)
{
    return fsdpi_has_plane(model) || (model->divides && model->shards->size > 1);
}

fsdp_status fsdpi_model_reduce(fsdp_model *model, const char *function, const char *label, fsdp_status status,
                               void *data, size_t count, fsdp_dtype dtype, fsdp_redop op)
{
    const fsdpi_purpose purpose = {.name = function, .label = label, .status = status};
    fsdp_context       *ctx     = fsdpi_has_plane(model) ? model->plane.ctx : model->shards;

    fsdpi_error_hand_on(model->ctx, ctx, status);
    const fsdp_status told = fsdpi_allreduce(ctx, &purpose, FSDP_IN_PLACE, data, count, dtype, op);
    fsdpi_error_hand_on(ctx, model->ctx, told);
    return fsdpi_step_tell(model, told);
}

fsdp_status fsdpi_model_sum(fsdp_model *model, const char *function, const char *label, fsdp_status status, bool forced,
                            void *data, size_t count, fsdp_dtype dtype, fsdp_redop op)
{
    const bool spread = fsdpi_model_is_spread(model);

    if (model->failed) {
        return status;
    }
    if (!spread || model->shards != model->ctx) {
        status = fsdpi_step_agree(model, function, label, 0, status, forced);
        if (model->failed || (status != FSDP_OK && !fsdpi_has_plane(model))) {
            return status;
        }
    }
    return spread ? fsdpi_model_reduce(model, function, label, status, data, count, dtype, op) : status;
}
