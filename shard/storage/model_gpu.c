#include "shard/storage/model_gpu.h"

#include <stdio.h>

void fsdpi_compute_keep(fsdp_model *model, fsdp_status status)
{
    if (status != FSDP_OK && model->compute_status == FSDP_OK) {
        model->compute_status = status;
        (void)snprintf(model->compute_error, sizeof model->compute_error, "%.*s", (int)sizeof model->compute_error - 1,
                       fsdpi_error_recorded(model->ctx));
    }
}

fsdp_status fsdpi_compute_kept(fsdp_model *model)
{
    const fsdp_status status = model->compute_status;

    model->compute_status = FSDP_OK;
    return status != FSDP_OK ? fsdpi_record(model->ctx, status, "%s", model->compute_error) : FSDP_OK;
}
