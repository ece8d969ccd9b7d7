#include "lib/context/gpu_scratch.h"

#include "lib/base/error.h"
#include "lib/context/context.h"
#include "lib/device/memory.h"

/* Releasing waits until the device is idle. */
static void release(fsdp_context *ctx)
{
    fsdpi_gpu_device  *device  = ctx->gpu.device;
    fsdpi_gpu_scratch *scratch = &ctx->gpu.scratch;

    if (scratch->memory != NULL) {
        (void)device->ops->release(device, scratch->memory);
        fsdpi_uncount_device_memory(ctx, FSDP_MEMORY_STAGING, scratch->bytes);
    }
    scratch->memory = NULL;
    scratch->bytes  = 0;
}

static fsdp_status grow(fsdp_context *ctx, size_t bytes)
{
    fsdpi_gpu_device  *device  = ctx->gpu.device;
    fsdpi_gpu_scratch *scratch = &ctx->gpu.scratch;

    if (bytes <= scratch->bytes) {
        return FSDP_OK;
    }
    release(ctx);
    FSDP_TRY(device->ops->alloc(device, "scratch memory of a call", bytes, &scratch->memory));
    scratch->bytes = bytes;
    fsdpi_count_device_memory(ctx, FSDP_MEMORY_STAGING, bytes);
    return FSDP_OK;
}

static fsdp_status prepare(fsdp_context *ctx, size_t bytes)
{
    fsdpi_gpu_device  *device  = ctx->gpu.device;
    fsdpi_gpu_scratch *scratch = &ctx->gpu.scratch;

    if (scratch->used == NULL) {
        FSDP_TRY(device->ops->event_open(device, false, &scratch->used));
    }
    FSDP_TRY(grow(ctx, bytes));
    return device->ops->wait_for(device, fsdpi_gpu_caller(&ctx->gpu), scratch->used);
}

fsdp_status fsdpi_gpu_scratch_take(fsdp_context *ctx, size_t bytes, void **memory)
{
    (void)pthread_mutex_lock(&ctx->gpu.scratch.lock);
    const fsdp_status status = prepare(ctx, bytes);
    *memory                  = ctx->gpu.scratch.memory;
    if (status != FSDP_OK) {
        (void)pthread_mutex_unlock(&ctx->gpu.scratch.lock);
    }
    return status;
}

fsdp_status fsdpi_gpu_scratch_leave(fsdp_context *ctx)
{
    fsdpi_gpu_device *device = ctx->gpu.device;
    const fsdp_status status = device->ops->event_record(device, ctx->gpu.scratch.used, fsdpi_gpu_caller(&ctx->gpu));

    (void)pthread_mutex_unlock(&ctx->gpu.scratch.lock);
    return status;
}

void fsdpi_gpu_scratch_open(fsdp_context *ctx)
{
    (void)pthread_mutex_init(&ctx->gpu.scratch.lock, NULL);
}

void fsdpi_gpu_scratch_close(fsdp_context *ctx)
{
    fsdpi_gpu_device *device = ctx->gpu.device;

    release(ctx);
    (void)device->ops->event_close(device, ctx->gpu.scratch.used);
    (void)pthread_mutex_destroy(&ctx->gpu.scratch.lock);
}
