#include "bench/job/measure.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/compare/baseline.h"
#include "bench/compare/check.h"
#include "bench/job/block.h"
#include "bench/job/gpu_rate.h"

typedef struct samples {
    double *ours, *here, *other, *memory, *ratios;
    size_t  n;
} samples;

bench_buffers bench_next_buffers(bench_job *job, const bench_case *c)
{
    const size_t turn = bench_job_takes_turns(job->options) ? job->turn++ : 0;

    return bench_buffers_turn(&job->buffers, c, turn);
}

fsdp_status bench_time_ours(bench_job *job, const bench_case *c, size_t iterations, double *seconds)
{
    double begin;

    MPI_Barrier(job->world->comm);
    begin = bench_now();
    for (size_t i = 0; i < iterations; i++) {
        const bench_buffers b = bench_next_buffers(job, c);

        BENCH_TRY(bench_run(c, job->world->ctx, b.in, bench_buffers_result(&b, c)));
    }
    bench_gpu_finish(job->gpu); /* which the operations may be ahead of */
    *seconds = bench_max(job->world, bench_now() - begin) / (double)(iterations ? iterations : 1);
    return FSDP_OK;
}

/* As a program has to do it that has its data on a GPU: an MPI that does not take it there is given memory of the host. */
static void run_mpi(const bench_job *job, const bench_case *c, const bench_buffers *b)
{
    const int    rank    = job->world->rank;
    const size_t element = fsdp_dtype_size(c->dtype);

    if (fsdp_has_gpu_aware_mpi(job->world->ctx) && job->gpu) {
        bench_baseline_run(c, job->world->comm, b->in, b->out);
        return;
    }
    bench_buffers_fetch(b, bench_input(c, rank, b->host_in, b->host_out), bench_in_count(c, rank) * element);
    bench_baseline_run(c, job->world->comm, b->host_in, b->host_out);
    bench_buffers_send(b, b->host_out, bench_out_count(c, rank) * element);
}

double bench_time_mpi(bench_job *job, const bench_case *c, size_t iterations)
{
    double begin;

    MPI_Barrier(job->world->comm);
    begin = bench_now();
    for (size_t i = 0; i < iterations; i++) {
        const bench_buffers b = bench_next_buffers(job, c);

        run_mpi(job, c, &b);
    }
    bench_gpu_finish(job->gpu);
    return bench_max(job->world, bench_now() - begin) / (double)(iterations ? iterations : 1);
}

/* All ranks see the same times, the slowest rank's, and so decide alike. */
fsdp_status bench_probe_ours(bench_job *job, const bench_case *c, size_t *iterations)
{
    double seconds;
    size_t n = 1;

    BENCH_TRY(bench_time_ours(job, c, job->options->warmup, &seconds));
    BENCH_TRY(bench_time_ours(job, c, n, &seconds));
    while (seconds * (double)n < BENCH_PROBE_SECONDS && !job->options->iterations) {
        n *= 4;
        BENCH_TRY(bench_time_ours(job, c, n, &seconds));
    }
    *iterations = bench_block_iterations(job->options, seconds);
    return FSDP_OK;
}

static size_t probe_mpi(bench_job *job, const bench_case *c)
{
    double seconds;
    size_t n = 1;

    (void)bench_time_mpi(job, c, job->options->warmup);
    seconds = bench_time_mpi(job, c, n);
    while (seconds * (double)n < BENCH_PROBE_SECONDS && !job->options->iterations) {
        n *= 4;
        seconds = bench_time_mpi(job, c, n);
    }
    return bench_block_iterations(job->options, seconds);
}

static fsdp_status check(bench_job *job, const bench_case *c, bench_result *result)
{
    if (job->options->no_check) {
        return FSDP_OK;
    }
    job->pattern++;
    result->checked = 1;
    return bench_check(c, job->world, &job->buffers, job->pattern, &result->wrong);
}

/* Writes to the output of MPI's side: it may be memory that the library has not written. */
static void compare(const samples *s, double *theirs, double ours, bench_against *against)
{
    *against = (bench_against){.seconds = -1};
    if (s->n == 0 || theirs[0] < 0) {
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        s->ratios[i] = theirs[i] / s->ours[i];
    }
    (void)bench_median(s->ratios, s->n);
    against->ratio_least = s->ratios[0];
    against->ratio_most  = s->ratios[s->n - 1];
    against->seconds     = bench_median(theirs, s->n);
    against->best        = theirs[0];
    against->worst       = theirs[s->n - 1];
    against->ratio       = against->seconds / ours;
}

/* BYTES per second of a node, now. */
static double memory_rate(const bench_job *job)
{
    return job->bandwidth.arrays ? bench_bandwidth_again(job->world, &job->bandwidth) : job->limits.memory;
}

static fsdp_status run_blocks(bench_job *job, const bench_case *c, size_t iterations, samples *s)
{
    const int    can   = bench_baseline_can(c);
    const size_t n_mpi = can ? probe_mpi(job, c) : 0;

    if (can) {
        (void)bench_twin_time(&job->twin, job->world, c, job->options->warmup ? job->options->warmup : 1);
    }
    for (size_t i = 0; i < s->n; i++) {
        BENCH_TRY(bench_time_ours(job, c, iterations, &s->ours[i]));
        s->memory[i] = memory_rate(job);
        s->here[i]   = can ? bench_time_mpi(job, c, n_mpi) : -1;
        s->other[i]  = can ? bench_twin_time(&job->twin, job->world, c, n_mpi) : -1;
    }
    return FSDP_OK;
}

static void conclude(samples *s, bench_result *result)
{
    double *ours = s->ratios;

    for (size_t i = 0; i < s->n; i++) {
        ours[i] = s->ours[i]; /* those of s->ours stay beside their partners */
    }
    result->seconds      = bench_median(ours, s->n);
    result->best         = ours[0];
    result->worst        = ours[s->n - 1];
    result->memory_least = result->memory = s->memory[0];
    for (size_t i = 1; i < s->n; i++) {
        result->memory       = s->memory[i] > result->memory ? s->memory[i] : result->memory;
        result->memory_least = s->memory[i] < result->memory_least ? s->memory[i] : result->memory_least;
    }
    compare(s, s->here, result->seconds, &result->here);
    compare(s, s->other, result->seconds, &result->other);
}

static fsdp_status measure(bench_job *job, const bench_case *c, samples *s, bench_result *result)
{
    *result = (bench_result){.what = *c};
    BENCH_TRY(check(job, c, result));
    BENCH_TRY(bench_probe_ours(job, c, &result->iterations));
    (void)snprintf(result->algorithm, sizeof result->algorithm, "%s", fsdp_last_algorithm(job->world->ctx));
    BENCH_TRY(run_blocks(job, c, result->iterations, s));
    conclude(s, result);
    if (job->gpu) {
        result->memory = result->memory_least = bench_gpu_copy_rate(job, c->bytes);
    }
    return check(job, c, result);
}

fsdp_status bench_measure(bench_job *job, const bench_case *c, bench_result *result)
{
    const size_t n      = job->options->repeat;
    double      *values = calloc(5 * n, sizeof *values);
    fsdp_status  status = bench_agree(job->world, values != NULL, "no memory for the samples; use a smaller --repeat");

    if (status == FSDP_OK) {
        samples s = {values, values + n, values + 2 * n, values + 3 * n, values + 4 * n, n};

        status = measure(job, c, &s, result);
    }
    free(values);
    return status;
}

static fsdp_status time_blocks(bench_job *job, const bench_case *c, bench_result *result, double *seconds)
{
    BENCH_TRY(bench_probe_ours(job, c, &result->iterations));
    (void)snprintf(result->algorithm, sizeof result->algorithm, "%s", fsdp_last_algorithm(job->world->ctx));
    for (size_t i = 0; i < job->options->repeat; i++) {
        BENCH_TRY(bench_time_ours(job, c, result->iterations, &seconds[i]));
    }
    result->seconds = bench_median(seconds, job->options->repeat);
    result->best    = seconds[0];
    result->worst   = seconds[job->options->repeat - 1];
    return FSDP_OK;
}

fsdp_status bench_measure_ours(bench_job *job, const bench_case *c, bench_result *result)
{
    double     *seconds = calloc(job->options->repeat, sizeof *seconds);
    fsdp_status status;

    *result = (bench_result){.what = *c, .here = {.seconds = -1}, .other = {.seconds = -1}};
    status  = bench_agree(job->world, seconds != NULL, "no memory for the samples; use a smaller --repeat");
    if (status == FSDP_OK) {
        status = time_blocks(job, c, result, seconds);
    }
    free(seconds);
    return status == FSDP_OK ? check(job, c, result) : status;
}
