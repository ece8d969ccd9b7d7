/**
 * @file
 * What the files that call a GPU's runtime share: the device that a call is for, and its errors.
 */
#ifndef FSDPI_GPU_RUNTIME_H
#define FSDPI_GPU_RUNTIME_H

#include "kernels/hip/runtime.h"
#include "lib/device/gpu_compute.h"
#include "lib/device/gpu_device.h"

/** FSDP_ERR_DEVICE, recorded and printed in the runtime's own words. `call`: what has failed. */
fsdp_status fsdpi_gpu_fail(fsdpi_gpu_device *gpu, const char *call, hipError_t error);

/** The thread's choice of a device is the program's: what depends on it is called between these two. */
fsdp_status fsdpi_gpu_enter(fsdpi_gpu_device *gpu, int *before);
void        fsdpi_gpu_leave(const fsdpi_gpu_device *gpu, int before);

#endif
