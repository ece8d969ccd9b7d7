#include "bench/lanes/lanes.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "bench/compare/check.h"
#include "bench/job/cases.h"
#include "bench/job/measure.h"
#include "bench/lanes/lanes_report.h"
#include "lib/progress/request.h"

/* Gathers issued at once: one, and many. */
static const size_t QUEUED[] = {1, 16};
#define MOST_QUEUED 16
#define N_QUEUED    (sizeof QUEUED / sizeof QUEUED[0])

#define MOST_SUMS     4096
#define SUMS_ALONE    200
#define BETWEEN_SUMS  500e-6 /* SECONDS, in which the caller sleeps, as one whose GPU computes */
#define BETWEEN_LOOKS 100e-6

typedef struct lanes_run {
    bench_job         *job;
    bench_lanes_result result;
    double            *sums; /* SECONDS of each, on this rank */
    size_t             wrong;
} lanes_run;

fsdp_status bench_lanes_possible(const bench_world *world, const bench_options *options)
{
    const int has = !options->lanes || fsdp_has_progress_thread(world->ctx);

    return bench_agree(
        world, has,
        "--lanes measures beside the progress thread, and there is none; leave out FSDP_PROGRESS, and use an MPI "
        "that gives MPI_THREAD_MULTIPLE");
}

static void nap(double seconds)
{
    const struct timespec t = {0, (long)(seconds * 1e9)};

    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

/* Without carrying it out. */
static int is_done(const fsdp_request *request)
{
    return atomic_load_explicit(&request->state, memory_order_acquire) == FSDPI_REQUEST_DONE;
}

static void *result_of(const lanes_run *r)
{
    return bench_buffers_result(&r->job->buffers, &r->result.what);
}

/* All of the same data into the same place: one moves after the other, and nobody looks before the last has come. */
static fsdp_status issue(const lanes_run *r, fsdp_request **requests)
{
    for (size_t i = 0; i < r->result.queued; i++) {
        BENCH_TRY(bench_issue(&r->result.what, r->job->world->ctx, r->job->buffers.in, result_of(r), &requests[i]));
    }
    return FSDP_OK;
}

/* ---- gathers without sums --------------------------------------------------------------------------------------------- */

static fsdp_status time_gathers(const lanes_run *r, double *seconds)
{
    fsdp_request *requests[MOST_QUEUED];

    MPI_Barrier(r->job->world->comm);
    const double begin = bench_now();
    BENCH_TRY(issue(r, requests));
    while (!is_done(requests[r->result.queued - 1])) {
        nap(BETWEEN_LOOKS);
    }
    *seconds = (bench_now() - begin) / (double)r->result.queued;
    BENCH_TRY(fsdp_wait_all(r->result.queued, requests));
    *seconds = bench_max(r->job->world, *seconds);
    return FSDP_OK;
}

/* ---- sums ------------------------------------------------------------------------------------------------------------- */

/* One sum: of the ranks that say `done`. */
static fsdp_status sum_once(lanes_run *r, int done, int *all_done, size_t *n)
{
    const bench_world *world = r->job->world;
    float              sum   = done ? 1.0F : 0.0F;
    const double       begin = bench_now();

    BENCH_TRY(fsdp_allreduce(world->ctx, FSDP_IN_PLACE, &sum, 1, FSDP_F32, FSDP_SUM));
    if (*n < MOST_SUMS) {
        r->sums[(*n)++] = bench_now() - begin;
    }
    *all_done = sum >= (float)world->size;
    return FSDP_OK;
}

/* Who comes early waits for the others: a sum takes what it takes the rank that comes last. */
static void keep_the_last_ones(const lanes_run *r, double *seconds, size_t n)
{
    MPI_Allreduce(MPI_IN_PLACE, seconds, (int)n, MPI_DOUBLE, MPI_MIN, r->job->world->comm);
}

/* A gather's time is that of all of them, the sums in between included. */
static fsdp_status time_beside(lanes_run *r, size_t *n, double *seconds)
{
    fsdp_request *requests[MOST_QUEUED];
    const size_t  before   = *n;
    int           all_done = 0;

    MPI_Barrier(r->job->world->comm);
    const double begin = bench_now();
    BENCH_TRY(issue(r, requests));
    while (!all_done) {
        nap(BETWEEN_SUMS);
        BENCH_TRY(sum_once(r, is_done(requests[r->result.queued - 1]), &all_done, n));
    }
    *seconds = (bench_now() - begin) / (double)r->result.queued;
    if (*n > before) {
        (*n)--; /* beside the last one nothing moved */
    }
    BENCH_TRY(fsdp_wait_all(r->result.queued, requests));
    *seconds = bench_max(r->job->world, *seconds);
    return FSDP_OK;
}

static fsdp_status time_alone(lanes_run *r)
{
    size_t n = 0;
    int    all_done;

    for (int i = 0; i < SUMS_ALONE; i++) {
        nap(BETWEEN_LOOKS);
        BENCH_TRY(sum_once(r, 0, &all_done, &n));
    }
    keep_the_last_ones(r, r->sums, n);
    r->result.alone = bench_median(r->sums, n);
    return FSDP_OK;
}

/* ---- one size ---------------------------------------------------------------------------------------------------------- */

static fsdp_status check(lanes_run *r)
{
    const bench_world *world   = r->job->world;
    const unsigned     pattern = ++r->job->pattern;
    size_t             n       = 0;
    double             seconds;
    uint64_t           wrong;

    MPI_Barrier(world->comm);
    bench_fill(&r->result.what, world->rank, pattern, r->job->buffers.in, result_of(r));
    MPI_Barrier(world->comm);
    BENCH_TRY(time_beside(r, &n, &seconds));
    wrong = bench_count_wrong(&r->result.what, world->rank, pattern, result_of(r));
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, world->comm);
    r->result.wrong += wrong;
    return FSDP_OK;
}

/* The quantile of values in order. */
static double quantile(const double *values, size_t n, double share)
{
    const size_t i = (size_t)(share * (double)n);

    return n > 0 ? values[i < n ? i : n - 1] : -1;
}

static fsdp_status measure(lanes_run *r, double *alone, double *beside)
{
    const size_t repeat = r->job->options->repeat;
    size_t       n      = 0;

    BENCH_TRY(check(r));
    BENCH_TRY(time_alone(r));
    for (size_t i = 0; i < repeat; i++) {
        BENCH_TRY(time_gathers(r, &alone[i]));
        BENCH_TRY(time_beside(r, &n, &beside[i]));
    }
    keep_the_last_ones(r, r->sums, n);
    r->result.sums          = n;
    r->result.median        = n > 0 ? bench_median(r->sums, n) : -1; /* puts them in order */
    r->result.p90           = quantile(r->sums, n, 0.9);
    r->result.most          = quantile(r->sums, n, 1.0);
    r->result.gather_alone  = bench_median(alone, repeat);
    r->result.gather_beside = bench_median(beside, repeat);
    return FSDP_OK;
}

static fsdp_status measure_size(lanes_run *r, const bench_case *c, double *alone, double *beside)
{
    for (size_t q = 0; q < N_QUEUED; q++) {
        r->result = (bench_lanes_result){.what = *c, .queued = QUEUED[q]};
        BENCH_TRY(measure(r, alone, beside));
        r->wrong += r->result.wrong;
        bench_lanes_row(r->job, &r->result);
        bench_lanes_record(r->job, &r->result);
    }
    return FSDP_OK;
}

/* `values`: room for the blocks of both kinds. */
static fsdp_status measure_all(lanes_run *r, double *values)
{
    bench_case c = {0};
    size_t     bytes;

    bench_lanes_head(r->job);
    while (bench_job_next_case(r->job, BENCH_ALLGATHER, &c, &bytes)) {
        BENCH_TRY(measure_size(r, &c, values, values + r->job->options->repeat));
    }
    bench_lanes_foot(r->job);
    return FSDP_OK;
}

fsdp_status bench_lanes(bench_job *job, size_t *wrong)
{
    lanes_run   r      = {.job = job, .sums = calloc(MOST_SUMS, sizeof(double))};
    double     *values = calloc(2 * job->options->repeat, sizeof *values);
    fsdp_status status =
        bench_agree(job->world, r.sums != NULL && values != NULL, "no memory for the samples; use a smaller --repeat");

    if (status == FSDP_OK) {
        status = measure_all(&r, values);
        *wrong += r.wrong;
    }
    free(values);
    free(r.sums);
    return status;
}
