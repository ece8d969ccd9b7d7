/* A build without a GPU runtime. */
#include "lib/device/gpu.h"

bool fsdpi_gpu_has_runtime(void)
{
    return false;
}

const char *fsdpi_gpu_missing(void)
{
    return "this build of the library has no GPU runtime";
}

int fsdpi_gpu_count(void)
{
    return 0;
}

bool fsdpi_gpu_address(int device, char *address, size_t size)
{
    (void)device;
    if (size > 0) {
        address[0] = '\0';
    }
    return false;
}

int fsdpi_gpu_selected(void)
{
    return -1;
}

bool fsdpi_gpu_select(int device)
{
    (void)device;
    return false;
}

bool fsdpi_is_gpu_memory(const void *address)
{
    (void)address;
    return false;
}
