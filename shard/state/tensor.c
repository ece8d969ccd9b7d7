#include "shard/state/tensor.h"

#include <stddef.h>

fsdp_dtype fsdpi_gathered_dtype(const fsdp_model *model, const fsdpi_tensor *tensor)
{
    if (tensor->dtype != FSDP_F32 || (tensor->flags & FSDP_TENSOR_KEEP_DTYPE) != 0) {
        return tensor->dtype;
    }
    return (tensor->flags & FSDP_TENSOR_IGNORED) != 0 ? model->options.buffer_dtype : model->options.param_dtype;
}

fsdpi_tensor *fsdpi_find_tensor(const fsdp_model *model, const char *name)
{
    return fsdpi_tensor_of_name(fsdpi_names_find(&model->tensor_names, name));
}
