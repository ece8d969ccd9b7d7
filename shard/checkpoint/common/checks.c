#include "shard/checkpoint/common/checks.h"

#include <string.h>

#include "fsdp/checkpoint.h"
#include "shard/checkpoint/format/folder.h"
#include "shard/optimizer/optimizer.h"
#include "shard/schedule/between_passes.h"

fsdp_status fsdpi_fail_problem(fsdp_context *ctx, const char *function, const fsdpi_problem *problem)
{
    return fsdpi_fail_together(ctx, problem->status, "%s: %s", function, problem->text);
}

fsdp_status fsdpi_check_at_step_end(fsdp_model *model, const char *function)
{
    FSDP_TRY(fsdpi_between_passes(model, function));
    return !fsdpi_has_gradients(model)
               ? FSDP_OK
               : fsdpi_fail_together(
                     model->ctx, FSDP_ERR_STATE,
                     "%s: there are gradients that no step has used; take a step or call fsdp_model_zero_grad "
                     "first",
                     function);
}

fsdp_status fsdpi_check_path(fsdp_context *ctx, const char *function, const char *path)
{
    if (path == NULL || path[0] == '\0') {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: the path is %s; give one", function,
                                   path == NULL ? "NULL" : "empty");
    }
    if (strlen(path) >= FSDP_CHECKPOINT_PATH_BYTES - FSDPI_FOLDER_NAME_BYTES) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: a path of %zu bytes; at most %d are possible", function,
                                   strlen(path), FSDP_CHECKPOINT_PATH_BYTES - FSDPI_FOLDER_NAME_BYTES - 1);
    }
    return FSDP_OK;
}

fsdp_status fsdpi_check_optimizer(const fsdp_model *model, const char *function, const fsdp_optimizer *optimizer)
{
    return optimizer == NULL || fsdpi_optimizer_model(optimizer) == model
               ? FSDP_OK
               : fsdpi_fail_together(model->ctx, FSDP_ERR_ARG,
                                     "%s: the optimizer belongs to another model; pass one of this", function);
}
