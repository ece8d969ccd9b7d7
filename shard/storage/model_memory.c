#include "shard/storage/model_memory.h"

#include <string.h>

#include "lib/device/gpu.h"
#include "lib/device/memory.h"
#include "shard/storage/compute.h"
#include "shard/storage/model_gpu.h"

fsdpi_home fsdpi_home_of_elements(const fsdp_model *model)
{
    return fsdpi_is_on_device(model) ? FSDPI_AT_DEVICE : FSDPI_AT_HOST;
}

fsdpi_home fsdpi_home_of_state(const fsdp_model *model)
{
    return fsdpi_is_offloaded(model) ? FSDPI_AT_PINNED : fsdpi_home_of_elements(model);
}

/* ---- allocating -------------------------------------------------------------------------------------------------- */

static void *alloc_on_device(fsdp_model *model, fsdp_memory_kind kind, size_t bytes)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);
    void             *memory;

    if (gpu->ops->alloc(gpu, fsdp_memory_name(kind), bytes, &memory) == FSDP_OK && memory != NULL) {
        fsdpi_compute_clear(model, memory, bytes);
        fsdpi_count_device_memory(model->ctx, kind, bytes);
    }
    return memory;
}

static void *alloc_pinned(fsdp_model *model, fsdp_memory_kind kind, size_t bytes)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);
    void             *memory;

    if (gpu->ops->alloc_pinned(gpu, fsdp_memory_name(kind), bytes, &memory) == FSDP_OK && memory != NULL) {
        memset(memory, 0, bytes);
        fsdpi_count_memory(model->ctx, kind, bytes);
    }
    return memory;
}

void *fsdpi_home_alloc(fsdp_model *model, fsdpi_home home, fsdp_memory_kind kind, size_t bytes)
{
    switch (home) {
    case FSDPI_AT_HOST:
        return fsdpi_alloc(model->ctx, kind, bytes);
    case FSDPI_AT_DEVICE:
        return alloc_on_device(model, kind, bytes);
    case FSDPI_AT_PINNED:
        return alloc_pinned(model, kind, bytes);
    }
    return NULL;
}

/* In a broken context streams may wait for a peer that is gone. */
static void release(fsdp_model *model, fsdpi_home home, void *memory)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    if (model->ctx->broken == FSDP_OK) {
        (void)(home == FSDPI_AT_DEVICE ? gpu->ops->release : gpu->ops->release_pinned)(gpu, memory);
    }
}

void fsdpi_home_free(fsdp_model *model, fsdpi_home home, fsdp_memory_kind kind, void *memory, size_t bytes)
{
    if (home == FSDPI_AT_HOST) {
        fsdpi_free(model->ctx, kind, memory, bytes);
        return;
    }
    if (memory != NULL) {
        release(model, home, memory);
        (home == FSDPI_AT_DEVICE ? fsdpi_uncount_device_memory : fsdpi_uncount_memory)(model->ctx, kind, bytes);
    }
}
