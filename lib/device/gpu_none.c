/* A build without a GPU runtime. */
#include "lib/device/gpu.h"

int fsdpi_gpu_count(void)
{
    return 0;
}

bool fsdpi_is_gpu_memory(const void *address)
{
    (void)address;
    return false;
}
