/**
 * @file
 * How fast a GPU does something, all ranks at once, each with its own or its share of one.
 */
#ifndef BENCH_GPU_RATE_H
#define BENCH_GPU_RATE_H

#include "bench/job/job.h"

/** What is put into the stream again and again. */
typedef struct bench_gpu_work {
    void (*launch)(bench_gpu *gpu, const void *arguments);
    const void *arguments;
} bench_gpu_work;

/** How many times a block should do it. Collective. */
size_t bench_gpu_probe(const bench_job *job, const bench_gpu_work *work);

/** SECONDS for each of `iterations`, on the slowest rank. Collective. */
double bench_gpu_time(const bench_job *job, const bench_gpu_work *work, size_t iterations);

/** A copy from one place of the GPU to another. */
typedef struct bench_gpu_copy_of {
    void       *to;
    const void *from;
    size_t      bytes;
} bench_gpu_copy_of;

bench_gpu_work bench_gpu_copy_work(const bench_gpu_copy_of *copy);

/** BYTES per second of a node in copies of so many bytes between the buffers, each read and written. Collective. */
double bench_gpu_copy_rate(const bench_job *job, size_t bytes);

#endif
