#include <hip/hip_runtime_api.h>

#include "lib/device/gpu.h"

int fsdpi_gpu_count(void)
{
    int count = 0;

    return hipGetDeviceCount(&count) == hipSuccess ? count : 0; /* without a driver it fails, and count is 0 */
}

bool fsdpi_is_gpu_memory(const void *address)
{
    hipPointerAttribute_t attributes;

    if (hipPointerGetAttributes(&attributes, address) != hipSuccess) {
        (void)
            hipGetLastError(); /* ordinary host memory is an error to HIP, which must not stay behind for the caller */
        return false;
    }
    return attributes.memoryType == hipMemoryTypeDevice;
}
