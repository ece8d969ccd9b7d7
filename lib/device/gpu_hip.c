#include "kernels/hip/runtime.h"
#include "lib/device/gpu.h"

bool fsdpi_gpu_has_runtime(void)
{
    int              count = 0;
    const hipError_t error = hipGetDeviceCount(&count);

    if (error != hipSuccess) {
        (void)hipGetLastError();
    }
    return error != hipErrorSharedObjectInitFailed; /* as kernels/hip/runtime_library.c says */
}

const char *fsdpi_gpu_missing(void)
{
    return fsdpi_gpu_has_runtime() ? "the runtime finds no GPU" : hipGetErrorString(hipErrorSharedObjectInitFailed);
}

int fsdpi_gpu_count(void)
{
    int count = 0;

    if (hipGetDeviceCount(&count) != hipSuccess) { /* so it is without a driver */
        (void)hipGetLastError();
        return 0;
    }
    return count;
}

bool fsdpi_gpu_address(int device, char *address, size_t size)
{
    return hipDeviceGetPCIBusId(address, (int)size, device) == hipSuccess;
}

int fsdpi_gpu_selected(void)
{
    int device = -1;

    return hipGetDevice(&device) == hipSuccess ? device : -1;
}

bool fsdpi_gpu_select(int device)
{
    return hipSetDevice(device) == hipSuccess;
}

bool fsdpi_is_gpu_memory(const void *address)
{
    hipPointerAttribute_t attributes;

    if (hipPointerGetAttributes(&attributes, address) != hipSuccess) {
        (void)
            hipGetLastError(); /* ordinary host memory is an error to HIP, which must not stay behind for the caller */
        return false;
    }
    return FSDPI_GPU_MEMORY_TYPE(&attributes) == hipMemoryTypeDevice;
}
