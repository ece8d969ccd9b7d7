#include "shard/state/tp_part.h"

#include <inttypes.h>
#include <string.h>

static size_t blocks_of(const fsdp_tensor *tensor)
{
    return tensor->tp_blocks > 0 ? tensor->tp_blocks : 1;
}

static fsdp_status check_undivided(const fsdp_model *model, const char *unit, const fsdp_tensor *tensor)
{
    return tensor->tp_dim == 0 && tensor->tp_blocks == 0
               ? FSDP_OK
               : fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                            "unit '%s', tensor '%s': tp_dim is %" PRIu32 " and tp_blocks %" PRIu32
                            " without FSDP_TENSOR_TP; set this flag, or both to 0",
                            unit, tensor->name, tensor->tp_dim, tensor->tp_blocks);
}

fsdp_status fsdpi_tp_check(const fsdp_model *model, const char *unit, const fsdp_tensor *tensor)
{
    const size_t blocks = blocks_of(tensor), positions = (size_t)model->plane.tp_size;

    if ((tensor->flags & FSDP_TENSOR_TP) == 0) {
        return check_undivided(model, unit, tensor);
    }
    if (tensor->tp_dim >= tensor->n_dims) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                          "unit '%s', tensor '%s': tp_dim is %" PRIu32 ", and it has %zu dimensions, counted from 0",
                          unit, tensor->name, tensor->tp_dim, tensor->n_dims);
    }
    const size_t extent = tensor->shape[tensor->tp_dim];
    if (extent % blocks != 0 || extent / blocks % positions != 0) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                          "unit '%s', tensor '%s': dimension %" PRIu32
                          " is %zu, in %zu block%s, which %zu positions of "
                          "axis \"%s\" do not divide; use a multiple of %zu",
                          unit, tensor->name, tensor->tp_dim, extent, blocks, blocks == 1 ? "" : "s", positions,
                          model->plane.tensor_text, blocks * positions);
    }
    return FSDP_OK;
}

void fsdpi_tp_divide(const fsdp_model *model, const fsdp_tensor *described, fsdpi_tensor *tensor)
{
    const bool divided = (described->flags & FSDP_TENSOR_TP) != 0;

    memcpy(tensor->whole_shape, described->shape, sizeof tensor->whole_shape);
    memcpy(tensor->shape, described->shape, sizeof tensor->shape);
    tensor->tp_parts = divided ? model->plane.tp_size : 1;
    if (divided) {
        tensor->shape[described->tp_dim] /= (size_t)tensor->tp_parts;
    }
    tensor->count = 1;
    for (size_t d = 0; d < tensor->n_dims; d++) {
        tensor->count *= tensor->shape[d];
    }
    tensor->tp_row = divided ? tensor->shape[described->tp_dim] / blocks_of(described) : tensor->count;
    for (size_t d = described->tp_dim + 1; divided && d < tensor->n_dims; d++) {
        tensor->tp_row *= tensor->shape[d];
    }
}
