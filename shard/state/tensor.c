#include "shard/state/tensor.h"

#include <string.h>

fsdp_dtype fsdpi_gathered_dtype(const fsdp_model *model, const fsdpi_tensor *tensor)
{
    if (tensor->dtype != FSDP_F32 || (tensor->flags & FSDP_TENSOR_KEEP_DTYPE) != 0) {
        return tensor->dtype;
    }
    return (tensor->flags & FSDP_TENSOR_IGNORED) != 0 ? model->options.buffer_dtype : model->options.param_dtype;
}

fsdpi_tensor *fsdpi_find_tensor(const fsdp_model *model, const char *name)
{
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        for (size_t i = 0; i < unit->n_tensors; i++) {
            if (strcmp(unit->tensors[i].name, name) == 0) {
                return &unit->tensors[i];
            }
        }
    }
    return NULL;
}
