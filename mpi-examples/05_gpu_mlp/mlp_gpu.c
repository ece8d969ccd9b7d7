#include <stdio.h>
#include <stdlib.h>

#include "kernels/hip/runtime.h"
#include "mlp_device.h"
#include "mlp_kernels.h"

/* A rank that cannot go on would leave all others waiting for it. */
static void must(const char *call, hipError_t error)
{
    if (error != hipSuccess) {
        (void)fprintf(stderr, "%s: %s\n", call, hipGetErrorString(error));
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
}

static void *allocate(mlp_device *device, size_t bytes)
{
    void            *memory = NULL;
    const hipError_t error  = hipMalloc(&memory, bytes);

    (void)device;
    if (error == hipErrorOutOfMemory) {
        return NULL;
    }
    must("hipMalloc", error);
    return memory;
}

static void release(mlp_device *device, void *memory)
{
    (void)device;
    must("hipFree", hipFree(memory));
}

static void copy(mlp_device *device, void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        must("hipMemcpyAsync", hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, device->stream));
    }
}

static void finish(const mlp_device *device)
{
    must("hipStreamSynchronize", hipStreamSynchronize(device->stream));
}

static void fetch(mlp_device *device, void *to, const void *from, size_t bytes)
{
    copy(device, to, from, bytes);
    finish(device);
}

static void multiply(mlp_device *device, const mlp_product *product)
{
    must("the kernel of a matrix product", (hipError_t)mlp_launch_multiply(product, device->stream));
}

static void activate(mlp_device *device, const mlp_activation *activation)
{
    must("the kernel of an activation", (hipError_t)mlp_launch_activate(activation, device->stream));
}

static void sum(mlp_device *device, const mlp_sum *sum)
{
    must("the kernel of a sum", (hipError_t)mlp_launch_sum(sum, device->stream));
}

static void loss(mlp_device *device, const mlp_loss *loss)
{
    must("the kernel of the loss", (hipError_t)mlp_launch_loss(loss, device->stream));
}

static void close_gpu(mlp_device *device)
{
    finish(device);
    must("hipStreamDestroy", hipStreamDestroy(device->stream));
}

fsdp_status mlp_gpu_open(fsdp_context *ctx, mlp_device *device)
{
    hipStream_t stream;

    must("hipSetDevice", hipSetDevice(fsdp_device(ctx)));
    must("hipStreamCreateWithPriority", hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, 0));
    *device = (mlp_device){.name     = "gpu",
                           .alloc    = allocate,
                           .release  = release,
                           .send     = copy,
                           .fetch    = fetch,
                           .multiply = multiply,
                           .activate = activate,
                           .sum      = sum,
                           .loss     = loss,
                           .close    = close_gpu,
                           .stream   = stream};
    return fsdp_stream_set(ctx, stream);
}
