#include "job.h"

#include "header.h"

fsdp_status bench_context_open(bench_world *world, const bench_options *options, fsdp_config *config)
{
    if (options->ranks_per_node) {
        config->node_size = (int)options->ranks_per_node;
    }
    if (options->device == BENCH_DEVICE_GPU) {
        config->device = FSDP_DEVICE_GPU;
    }
    return fsdp_init(world->comm, config, &world->ctx);
}

size_t bench_job_most_bytes(const bench_world *world, const bench_options *options)
{
    const size_t least = (size_t)world->size * fsdp_dtype_size(options->dtype);

    const int own = options->step || options->checkpoint || options->kernels; /* these have memory of their own */

    return options->end > least && !own ? options->end : least;
}

fsdp_status bench_job_open(bench_job *job, bench_world *world, const bench_options *options)
{
    const size_t bytes  = bench_job_most_bytes(world, options);
    const int    shared = options->shared && !options->tune;

    *job = (bench_job){.options = options, .world = world, .twin = {.socket = -1}};
    BENCH_TRY(bench_records_open(&job->records, world, options));
    if (options->device == BENCH_DEVICE_GPU) {
        BENCH_TRY(bench_gpu_open(&job->gpu, world));
    }
    BENCH_TRY(bench_limits_measure(job));
    BENCH_TRY(bench_buffers_open(&job->buffers, world, job->gpu, options->memory, shared, bytes));
    bench_gpu_limits_measure(job, bytes);
    bench_twin_open(&job->twin, world, options, bytes);
    bench_header_print(job);
    return FSDP_OK;
}

fsdp_status bench_job_close(bench_job *job)
{
    fsdp_status status;

    bench_progress_bar_clear(&job->bar);
    bench_twin_close(&job->twin, job->world);
    status = bench_buffers_close(&job->buffers);
    bench_gpu_close(job->gpu);
    return bench_records_close(&job->records, job->world) == FSDP_OK ? status : FSDP_ERR_ARG;
}

bench_case bench_job_case(const bench_job *job, bench_collective collective, size_t bytes)
{
    const bench_options *o = job->options;
    bench_case           c = {.collective = collective, .ranks = job->world->size, .dtype = o->dtype, .op = o->op};

    c.shared   = o->shared && collective == BENCH_ALLGATHER;
    c.in_place = o->in_place || c.shared || collective == BENCH_BROADCAST;
    bench_case_size(&c, bytes);
    return c;
}

int bench_job_wants(const bench_job *job, bench_collective collective)
{
    return job->options->collectives >> collective & 1;
}

int bench_job_next_case(const bench_job *job, bench_collective collective, bench_case *c, size_t *bytes)
{
    const bench_options *o    = job->options;
    const size_t         last = c->bytes;

    *bytes = last ? *bytes : 0;
    do {
        if (*bytes > o->end / o->factor) {
            return 0;
        }
        *bytes = *bytes ? *bytes * o->factor : o->begin;
        *c     = bench_job_case(job, collective, *bytes);
    } while (c->bytes == last);
    return 1;
}

size_t bench_job_count_cases(const bench_job *job, bench_collective collective)
{
    bench_case c = {0};
    size_t     bytes, n = 0;

    while (bench_job_next_case(job, collective, &c, &bytes)) {
        n++;
    }
    return n;
}
