#include "bench/job/open.h"

#include "bench/job/header.h"

fsdp_status bench_context_open(bench_world *world, const bench_options *options, fsdp_config *config)
{
    if (options->ranks_per_node && !options->nodes) { /* else it is of nodes that are made up */
        config->node_size = (int)options->ranks_per_node;
    }
    if (options->device == BENCH_DEVICE_GPU) {
        config->device = FSDP_DEVICE_GPU;
    }
    return fsdp_init(world->comm, config, &world->ctx);
}

fsdp_status bench_job_open(bench_job *job, bench_world *world, const bench_options *options)
{
    const size_t bytes  = bench_job_buffer_bytes(world, options);
    const int    shared = options->shared && !options->tune;

    *job = (bench_job){.options = options, .world = world, .twin = {.socket = -1}};
    BENCH_TRY(bench_records_open(&job->records, world, options));
    if (options->device == BENCH_DEVICE_GPU) {
        BENCH_TRY(bench_gpu_open(&job->gpu, world));
    }
    BENCH_TRY(bench_limits_measure(job));
    if (!bench_options_sweep(options)) {
        bench_bandwidth_close(&job->bandwidth); /* it is not measured again */
    }
    BENCH_TRY(bench_buffers_open(&job->buffers, world, job->gpu, options->memory, shared, bytes));
    bench_gpu_limits_measure(job, bench_job_most_bytes(world, options));
    bench_twin_open(&job->twin, world, options, bytes);
    bench_header_print(job);
    return FSDP_OK;
}

fsdp_status bench_job_close(bench_job *job)
{
    fsdp_status status;

    bench_progress_bar_clear(&job->bar);
    bench_bandwidth_close(&job->bandwidth);
    bench_twin_close(&job->twin, job->world);
    status = bench_buffers_close(&job->buffers);
    bench_gpu_close(job->gpu);
    return bench_records_close(&job->records, job->world) == FSDP_OK ? status : FSDP_ERR_ARG;
}
