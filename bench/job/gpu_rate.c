#include "bench/job/gpu_rate.h"

#include "bench/job/block.h"

#define COPY_MOVES 2 /* BYTES read and written for each byte copied */

double bench_gpu_time(const bench_job *job, const bench_gpu_work *work, size_t iterations)
{
    double begin;

    bench_gpu_finish(job->gpu);
    MPI_Barrier(job->world->comm);
    begin = bench_now();
    for (size_t i = 0; i < iterations; i++) {
        work->launch(job->gpu, work->arguments);
    }
    bench_gpu_finish(job->gpu);
    return bench_max(job->world, bench_now() - begin) / (double)(iterations ? iterations : 1);
}

size_t bench_gpu_probe(const bench_job *job, const bench_gpu_work *work)
{
    (void)bench_gpu_time(job, work, job->options->warmup);
    return bench_block_iterations(job->options, bench_gpu_time(job, work, 1));
}

static void launch_copy(bench_gpu *gpu, const void *arguments)
{
    const bench_gpu_copy_of *copy = arguments;

    bench_gpu_copy(gpu, copy->to, copy->from, copy->bytes);
}

bench_gpu_work bench_gpu_copy_work(const bench_gpu_copy_of *copy)
{
    return (bench_gpu_work){launch_copy, copy};
}

double bench_gpu_copy_rate(const bench_job *job, size_t bytes)
{
    const bench_gpu_copy_of copy       = {job->buffers.out, job->buffers.in, bytes};
    const bench_gpu_work    work       = bench_gpu_copy_work(&copy);
    const size_t            iterations = bench_gpu_probe(job, &work);
    double                  least      = bench_gpu_time(job, &work, iterations);

    for (size_t i = 1; i < job->options->repeat; i++) {
        const double seconds = bench_gpu_time(job, &work, iterations);

        least = seconds < least ? seconds : least;
    }
    return COPY_MOVES * (double)bytes * job->limits.node_size / least;
}
