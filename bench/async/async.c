#include "bench/async/async.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/async/asleep.h"
#include "bench/async/async_report.h"
#include "bench/base/compute.h"
#include "bench/compare/check.h"
#include "bench/job/cases.h"
#include "bench/job/measure.h"

/* Each array has a value per block. */
typedef struct async_samples {
    double *blocking, *alone, *cpu, *share, *compute, *total;
} async_samples;
#define SAMPLES 6

typedef struct async_run {
    bench_job         *job;
    bench_async_result result;
    bench_asleep       asleep;
    async_samples      s;
    size_t             wrong; /* elements, over all sizes */
} async_run;

fsdp_status bench_async_possible(const bench_world *world, const bench_options *options)
{
    BENCH_TRY(
        bench_agree(world, !options->async || fsdp_has_progress_thread(world->ctx),
                    "--async measures the progress thread, and there is none; leave out FSDP_PROGRESS, and use an MPI "
                    "that gives MPI_THREAD_MULTIPLE"));
    return bench_agree(
        world, !options->async || bench_asleep_can(world->ctx),
        "--async takes from the flight recorder when an operation ended, and there is none; leave out FSDP_RECORD");
}

static void *result_of(const async_run *r)
{
    return bench_buffers_result(&r->job->buffers, &r->result.what);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* Each operation begins when all ranks have come, here as in time_alone(). */
static fsdp_status time_blocking(const async_run *r, double *seconds)
{
    const bench_world *world = r->job->world;
    double             sum   = 0;

    for (size_t i = 0; i < r->result.iterations; i++) {
        MPI_Barrier(world->comm);
        const double begin = bench_now();

        BENCH_TRY(bench_run(&r->result.what, world->ctx, r->job->buffers.in, result_of(r)));
        sum += bench_now() - begin;
    }
    *seconds = bench_max(world, sum) / (double)r->result.iterations;
    return FSDP_OK;
}

static fsdp_status time_alone(async_run *r, size_t block)
{
    const bench_world *world = r->job->world;
    const double       n = (double)r->result.iterations, cpu = fsdp_progress_cpu_seconds(world->ctx);
    const double       all = BENCH_ASLEEP_AT_ONCE; /* operations in an iteration */
    double             sum = 0, seconds, used;

    for (size_t i = 0; i < r->result.iterations; i++) {
        MPI_Barrier(world->comm);
        BENCH_TRY(
            bench_asleep_run(&r->asleep, &r->result.what, world->ctx, r->job->buffers.in, result_of(r), &seconds));
        sum += seconds;
    }
    used              = fsdp_progress_cpu_seconds(world->ctx) - cpu;
    r->s.alone[block] = bench_max(world, sum) / n;
    r->s.cpu[block]   = bench_max(world, used) / n / all;
    r->s.share[block] = bench_max(world, used / (sum * all));
    return FSDP_OK;
}

/* Each with a barrier, as a collective is one: where ranks share cores unevenly, all wait for the slowest each time. */
static double time_compute(const async_run *r, const bench_work *work)
{
    const bench_world *world = r->job->world;
    double             begin;

    MPI_Barrier(world->comm);
    begin = bench_now();
    for (size_t i = 0; i < r->result.iterations; i++) {
        bench_work_do(work);
        MPI_Barrier(world->comm);
    }
    return bench_max(world, bench_now() - begin) / (double)r->result.iterations;
}

static fsdp_status time_total(const async_run *r, const bench_work *work, double *seconds)
{
    const bench_world *world = r->job->world;
    fsdp_request      *request;
    double             begin;

    MPI_Barrier(world->comm);
    begin = bench_now();
    for (size_t i = 0; i < r->result.iterations; i++) {
        BENCH_TRY(bench_issue(&r->result.what, world->ctx, r->job->buffers.in, result_of(r), &request));
        bench_work_do(work);
        BENCH_TRY(fsdp_wait(request));
    }
    *seconds = bench_max(world, bench_now() - begin) / (double)r->result.iterations;
    return FSDP_OK;
}

/* As much CPU-bound compute on each rank as the blocking operation takes. */
static fsdp_status time_beside_compute(const async_run *r, size_t block)
{
    bench_work work;

    if (r->job->options->overlap_compute != BENCH_COMPUTE_CPU) {
        return FSDP_OK;
    }
    work                = bench_work_make(r->job->world, BENCH_COMPUTE_CPU, r->s.blocking[block]);
    r->s.compute[block] = time_compute(r, &work);
    return time_total(r, &work, &r->s.total[block]);
}

/* ---- one size ---------------------------------------------------------------------------------------------------- */

/* The result of an operation that the thread has carried out. */
static fsdp_status check(async_run *r)
{
    const bench_world   *world   = r->job->world;
    const bench_case    *c       = &r->result.what;
    const bench_buffers *b       = &r->job->buffers;
    const unsigned       pattern = ++r->job->pattern;
    void                *out     = result_of(r);
    double               seconds;
    uint64_t             wrong;

    if (r->job->options->no_check) {
        return FSDP_OK;
    }
    MPI_Barrier(world->comm); /* with one copy per node, a rank must not write its slot while another looks at it */
    bench_fill(c, world->rank, pattern, b->in, out);
    MPI_Barrier(world->comm);
    BENCH_TRY(bench_asleep_run(&r->asleep, c, world->ctx, b->in, out, &seconds));
    wrong = bench_count_wrong(c, world->rank, pattern, out);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, world->comm);
    r->result.wrong += wrong;
    r->result.checked = 1;
    return FSDP_OK;
}

static void conclude(async_run *r)
{
    const size_t        n      = r->job->options->repeat;
    const int           beside = r->job->options->overlap_compute == BENCH_COMPUTE_CPU;
    bench_async_result *result = &r->result;

    result->blocking = bench_median(r->s.blocking, n);
    result->alone    = bench_median(r->s.alone, n);
    result->cpu      = bench_median(r->s.cpu, n);
    result->share    = bench_median(r->s.share, n);
    result->compute  = beside ? bench_median(r->s.compute, n) : -1;
    result->total    = beside ? bench_median(r->s.total, n) : -1;
}

/* Blocking first and the thread first, in turn. */
static fsdp_status block(async_run *r, size_t i)
{
    if (i % 2 == 0) {
        BENCH_TRY(time_blocking(r, &r->s.blocking[i]));
        BENCH_TRY(time_alone(r, i));
    } else {
        BENCH_TRY(time_alone(r, i));
        BENCH_TRY(time_blocking(r, &r->s.blocking[i]));
    }
    return time_beside_compute(r, i);
}

static fsdp_status measure(async_run *r)
{
    bench_job          *job    = r->job;
    bench_async_result *result = &r->result;

    r->asleep = (bench_asleep){0};
    BENCH_TRY(bench_probe_ours(job, &result->what, &result->iterations));
    BENCH_TRY(check(r));
    for (size_t i = 0; i < job->options->repeat; i++) {
        BENCH_TRY(block(r, i));
    }
    (void)snprintf(result->algorithm, sizeof result->algorithm, "%s", fsdp_last_algorithm(job->world->ctx));
    conclude(r);
    return FSDP_OK;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static fsdp_status measure_case(void *run, const bench_case *c)
{
    async_run *r = run;

    r->result = (bench_async_result){.what = *c};
    BENCH_TRY(measure(r));
    r->wrong += r->result.wrong;
    return FSDP_OK;
}

static void report(void *run)
{
    const async_run *r = run;

    bench_async_row(r->job, &r->result);
    bench_async_record(r->job, &r->result);
}

static fsdp_status async_all(async_run *r)
{
    static const bench_case_steps steps = {BENCH_BROADCAST, bench_async_head, measure_case, report};

    BENCH_TRY(bench_cases_run(r->job, &steps, r));
    bench_async_foot(r->job);
    return FSDP_OK;
}

fsdp_status bench_async(bench_job *job, size_t *wrong)
{
    const size_t n      = job->options->repeat;
    async_run    r      = {.job = job};
    double      *values = calloc(SAMPLES * n, sizeof *values);
    fsdp_status  status;

    status = bench_agree(job->world, values != NULL, "no memory for the samples; use a smaller --repeat");
    if (status == FSDP_OK) {
        r.s    = (async_samples){values, values + n, values + 2 * n, values + 3 * n, values + 4 * n, values + 5 * n};
        status = async_all(&r);
        *wrong += r.wrong;
    }
    free(values);
    return status;
}
