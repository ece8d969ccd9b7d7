#include "bench/job/job.h"

size_t bench_job_most_bytes(const bench_world *world, const bench_options *options)
{
    const size_t least = (size_t)world->size * fsdp_dtype_size(options->dtype);

    const int own = options->step || options->checkpoint || options->kernels; /* these have memory of their own */

    return options->end > least && !own ? options->end : least;
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
