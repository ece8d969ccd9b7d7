#include "bench/machine/gpu.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/gpu.h"
#include "kernels/hip/runtime.h"

struct bench_gpu {
    int         rank;
    hipStream_t stream;
};

/* One rank that cannot go on would leave all others waiting for it. */
static void must(const bench_gpu *gpu, const char *call, hipError_t error)
{
    if (error != hipSuccess) {
        (void)fprintf(stderr, "fsdp-bench: rank %d: %s: %s\n", gpu->rank, call, hipGetErrorString(error));
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
}

fsdp_status bench_gpu_open(bench_gpu **gpu, const bench_world *world)
{
    const int device = fsdp_device(world->ctx);

    *gpu = device < 0 ? NULL : calloc(1, sizeof **gpu);
    BENCH_TRY(bench_agree(world, *gpu != NULL, "--device is gpu, but a rank has none; use --device host"));
    (*gpu)->rank = world->rank;
    must(*gpu, "hipSetDevice", hipSetDevice(device));
    must(*gpu, "hipStreamCreateWithPriority", hipStreamCreateWithPriority(&(*gpu)->stream, hipStreamNonBlocking, 0));
    return fsdp_stream_set(world->ctx, (*gpu)->stream);
}

void bench_gpu_close(bench_gpu *gpu)
{
    if (gpu) {
        bench_gpu_finish(gpu);
        must(gpu, "hipStreamDestroy", hipStreamDestroy(gpu->stream));
        free(gpu);
    }
}

/* `error`: of an allocation at `memory`. */
static void *unless_full(const bench_gpu *gpu, const char *call, hipError_t error, void *memory)
{
    if (error == hipErrorOutOfMemory) {
        (void)hipGetLastError();
        return NULL;
    }
    must(gpu, call, error);
    return memory;
}

void *bench_gpu_alloc(bench_gpu *gpu, size_t bytes)
{
    void            *memory = NULL;
    const hipError_t error  = hipMalloc(&memory, bytes);

    return unless_full(gpu, "hipMalloc", error, memory);
}

void bench_gpu_free(bench_gpu *gpu, void *memory)
{
    must(gpu, "hipFree", hipFree(memory));
}

void *bench_gpu_alloc_pinned(bench_gpu *gpu, size_t bytes)
{
    void            *memory = NULL;
    const hipError_t error  = hipHostMalloc(&memory, bytes, hipHostMallocDefault);

    return unless_full(gpu, "hipHostMalloc", error, memory);
}

void bench_gpu_free_pinned(bench_gpu *gpu, void *memory)
{
    must(gpu, "hipHostFree", hipHostFree(memory));
}

void bench_gpu_copy(bench_gpu *gpu, void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        must(gpu, "hipMemcpyAsync", hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, gpu->stream));
    }
}

void bench_gpu_finish(bench_gpu *gpu)
{
    if (gpu) {
        must(gpu, "hipStreamSynchronize", hipStreamSynchronize(gpu->stream));
    }
}

void bench_gpu_add(bench_gpu *gpu, void *out, const void *const *in, size_t n_in, size_t count)
{
    void *const results[] = {out};
    const int   error     = fsdpi_gpu_reduce_into(results, 1, in, n_in, count, FSDP_F32, FSDP_SUM, 1, gpu->stream);

    must(gpu, "the reduce kernel", (hipError_t)error);
}

void bench_gpu_cast(bench_gpu *gpu, void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype, size_t count)
{
    must(gpu, "the cast kernel", (hipError_t)fsdpi_gpu_cast(out, out_dtype, in, in_dtype, count, gpu->stream));
}

void bench_gpu_adamw(bench_gpu *gpu, void *w, const void *g, void *m, void *v, size_t count)
{
    const fsdpi_adam step = {.lr           = 0.25F,
                             .beta1        = 0.9F,
                             .beta2        = 0.999F,
                             .rest1        = 0.1F,
                             .rest2        = 0.001F,
                             .eps          = 1e-8F,
                             .weight_decay = 0.5F,
                             .correction1  = 0.1F,
                             .correction2  = 0.001F};

    must(gpu, "the AdamW kernel", (hipError_t)fsdpi_gpu_adamw(w, g, m, v, count, &step, gpu->stream));
}
