/**
 * @file
 * This rank's GPU, as the program needs it: memory, one stream, copies, and the library's kernels. A build without GPU
 * kernels has none. Whatever fails here, other than for lack of memory, ends the job with the runtime's own words.
 */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include "bench/base/world.h"

/** A GPU and the stream that all here is ordered on, and the context's operations too. NULL stands for host memory. */
typedef struct bench_gpu bench_gpu;

/** Opens the GPU that the context of `world` uses. Collective: FSDP_ERR_ARG on all ranks if one has none. */
fsdp_status bench_gpu_open(bench_gpu **gpu, const bench_world *world);

/** Nothing for NULL. Local, as all that follows. */
void bench_gpu_close(bench_gpu *gpu);

/** Memory of the GPU; NULL: there is no more. */
void *bench_gpu_alloc(bench_gpu *gpu, size_t bytes);
void  bench_gpu_free(bench_gpu *gpu, void *memory);

/** Memory of the host that the GPU copies from and to at full speed; NULL: there is no more. */
void *bench_gpu_alloc_pinned(bench_gpu *gpu, size_t bytes);
void  bench_gpu_free_pinned(bench_gpu *gpu, void *memory);

/** Puts a copy into the stream. */
void bench_gpu_copy(bench_gpu *gpu, void *to, const void *from, size_t bytes);

/** Waits until all that is in the stream is done. Nothing for NULL. */
void bench_gpu_finish(bench_gpu *gpu);

/** Puts one of the library's kernels into the stream; `count` in ELEMENTS, which are f32 where no type is given. */
void bench_gpu_add(bench_gpu *gpu, void *out, const void *const *in, size_t n_in, size_t count);
void bench_gpu_cast(bench_gpu *gpu, void *out, fsdp_dtype out_dtype, const void *in, fsdp_dtype in_dtype, size_t count);

/** The first step of AdamW, with learning rate 1/4 and weight decay 1/2. */
void bench_gpu_adamw(bench_gpu *gpu, void *w, const void *g, void *m, void *v, size_t count);

#endif
