/* A build without a compiler for GPU kernels. */
#include "mlp_device.h"
#include "mpi-examples/common/example_error.h"

fsdp_status mlp_gpu_open(fsdp_context *ctx, mlp_device *device)
{
    (void)ctx;
    *device = (mlp_device){0};
    return example_fail(
        "--device is gpu, but this program was built without GPU kernels, for lack of hipcc or nvcc; use "
        "--device host");
}
