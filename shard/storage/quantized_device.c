/*
 * Packed slices on a GPU: kernels in the model's stream.
 */
#include "lib/device/memory.h"
#include "shard/state/flat.h"
#include "shard/state/int8_blocks.h"
#include "shard/state/slices.h"
#include "shard/state/tensor.h"
#include "shard/storage/model_gpu.h"
#include "shard/storage/quantized.h"

_Static_assert(FSDPI_ALIGNMENT % FSDPI_INT8_BLOCK == 0, "pieces of an optimizer begin where blocks do");

void fsdpi_quantize_run(fsdpi_flat *flat, const float *x, size_t begin, size_t count)
{
    fsdp_model       *model = flat->model;
    fsdpi_gpu_device *gpu   = fsdpi_gpu_of(model);

    fsdpi_compute_keep(model, gpu->ops->compute->int8_pack(gpu, x, begin, count, fsdpi_held_elements(flat),
                                                           FSDPI_INT8_BLOCK, flat->low, fsdpi_stream_of(model)));
}

void fsdpi_dequantize(fsdpi_view *view)
{
    const fsdpi_flat *flat  = view->packed;
    fsdp_model       *model = flat->model;
    fsdpi_gpu_device *gpu   = fsdpi_gpu_of(model);
    const size_t      n     = flat->layout.shard;

    for (size_t slice = 0; slice < (size_t)flat->layout.size; slice++) {
        fsdpi_compute_keep(model,
                           gpu->ops->compute->int8_unpack(
                               gpu, fsdpi_packed_slices(flat, view) + slice * fsdpi_packed_slice_bytes(&flat->layout),
                               n, FSDPI_INT8_BLOCK, fsdpi_element_of(view->memory, slice * n, flat->dtype), flat->dtype,
                               fsdpi_stream_of(model)));
    }
}

void fsdpi_read_back_on_device(fsdpi_flat *flat)
{
    fsdp_model       *model = flat->model;
    fsdpi_gpu_device *gpu   = fsdpi_gpu_of(model);

    fsdpi_compute_keep(model,
                       gpu->ops->compute->int8_unpack(gpu, flat->low, fsdpi_held_elements(flat), FSDPI_INT8_BLOCK,
                                                      flat->view.memory, flat->dtype, fsdpi_stream_of(model)));
}

fsdp_status fsdpi_unpack_on_device(fsdpi_flat *flat, const fsdpi_purpose *purpose, fsdpi_view *view)
{
    (void)purpose;
    view->packed = flat;
    return FSDP_OK;
}
