/* A build without GPU kernels: nothing can be opened, and so nothing else is called. */
#include "bench/machine/gpu.h"

fsdp_status bench_gpu_open(bench_gpu **gpu, const bench_world *world)
{
    *gpu = NULL;
    return bench_agree(world, 0, "--device is gpu, but this build has no GPU kernels; use --device host");
}

void bench_gpu_close(bench_gpu *gpu)
{
    (void)gpu;
}

void *bench_gpu_alloc(bench_gpu *gpu, size_t bytes)
{
    (void)gpu;
    (void)bytes;
    return NULL;
}

void bench_gpu_free(bench_gpu *gpu, void *memory)
{
    (void)gpu;
    (void)memory;
}

void *bench_gpu_alloc_pinned(bench_gpu *gpu, size_t bytes)
{
    return bench_gpu_alloc(gpu, bytes);
}

void bench_gpu_free_pinned(bench_gpu *gpu, void *memory)
{
    bench_gpu_free(gpu, memory);
}

void bench_gpu_copy(bench_gpu *gpu, void *to, const void *from, size_t bytes)
{
    (void)gpu;
    (void)to;
    (void)from;
    (void)bytes;
}

void bench_gpu_finish(bench_gpu *gpu)
{
    (void)gpu;
}

void bench_gpu_add(bench_gpu *gpu, void *out, const void *const *in, size_t n_in, size_t count)
{
    (void)gpu;
    (void)out;
    (void)in;
    (void)n_in;
    (void)count;
}

void bench_gpu_cast(bench_gpu *gpu, void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype, size_t count)
{
    (void)gpu;
    (void)out;
    (void)out_dtype;
    (void)in;
    (void)in_dtype;
    (void)count;
}

void bench_gpu_adamw(bench_gpu *gpu, void *w, const void *g, void *m, void *v, size_t count)
{
    (void)gpu;
    (void)w;
    (void)g;
    (void)m;
    (void)v;
    (void)count;
}
