#include "bench/job/job.h"

#include <stdint.h>

#define MOST_TURN_BYTES ((size_t)64 << 20)

/* Those with memory of their own. */
static int needs_none(const bench_options *o)
{
    return o->step || o->checkpoint || o->pipeline || o->kernels || o->record;
}

int bench_job_takes_turns(const bench_options *options)
{
    return !(options->reuse || options->osu || options->overlap || options->async || options->lanes ||
             needs_none(options));
}

/* The buffers of all ranks of a machine fill its last-level cache twice. */
static size_t turn_bytes(const bench_world *world)
{
    int ranks = fsdp_node_size(world->ctx);

    MPI_Allreduce(MPI_IN_PLACE, &ranks, 1, MPI_INT, MPI_MIN, world->comm);
    const size_t each = 2 * fsdp_cache_bytes(world->ctx) / (size_t)ranks;
    uint64_t     most = each < MOST_TURN_BYTES ? each : MOST_TURN_BYTES;
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_UINT64_T, MPI_MAX, world->comm);
    return (size_t)most;
}

size_t bench_job_most_bytes(const bench_world *world, const bench_options *options)
{
    const size_t least = (size_t)world->size * fsdp_dtype_size(options->dtype);

    return options->end > least && !needs_none(options) ? options->end : least;
}

size_t bench_job_buffer_bytes(const bench_world *world, const bench_options *options)
{
    const size_t most = bench_job_most_bytes(world, options);
    const size_t room = bench_job_takes_turns(options) ? turn_bytes(world) : 0;

    return most > room ? most : room;
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

size_t bench_next_size(const bench_options *o, size_t bytes)
{
    if (!bytes) {
        return o->begin;
    }
    return bytes >= o->end ? 0 : bytes > o->end / o->factor ? o->end : bytes * o->factor;
}

int bench_job_next_case(const bench_job *job, bench_collective collective, bench_case *c, size_t *bytes)
{
    const size_t last = c->bytes;

    *bytes = last ? *bytes : 0;
    do {
        *bytes = bench_next_size(job->options, *bytes);
        if (!*bytes) {
            return 0;
        }
        *c = bench_job_case(job, collective, *bytes);
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
