/* A build without a GPU runtime. */
#include "lib/device/gpu_device.h"

fsdp_status fsdpi_gpu_device_open(fsdp_context *ctx, fsdpi_gpu_device **gpu)
{
    (void)ctx;
    *gpu = NULL;
    return FSDP_OK;
}
