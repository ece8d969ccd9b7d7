#include "shard/state/failed_add.h"

#include <stdio.h>

fsdp_status fsdpi_remember_failed_add(fsdp_model *model, fsdp_status status)
{
    if (model->add_status == FSDP_OK) {
        model->add_status = status;
        (void)snprintf(model->add_error, sizeof model->add_error, "%.*s", FSDPI_DETAIL_BYTES - 1,
                       fsdpi_error_recorded(model->ctx));
    }
    return status;
}
