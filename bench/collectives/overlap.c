#include "bench/collectives/overlap.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/base/compute.h"
#include "bench/collectives/overlap_report.h"
#include "bench/compare/baseline.h"
#include "bench/job/block.h"
#include "bench/job/cases.h"
#include "bench/job/measure.h"

static double cpu_seconds(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/*
 * SECONDS that all cores of the machine have been busy, the kernel's work for the network included, which is no process's.
 * 0 where the system does not say, or where this job has not all of its cores.
 */
static double busy_seconds(int cores)
{
    double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softirq = 0;
    FILE  *file = cores == (int)sysconf(_SC_NPROCESSORS_ONLN) ? fopen("/proc/stat", "re") : NULL;
    int    read = 0;

    if (file) {
        read = fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &wait, &irq, &softirq);
        (void)fclose(file);
    }
    return read == 7 ? (user + nice + system + irq + softirq) / (double)sysconf(_SC_CLK_TCK) : 0;
}

static fsdp_status ours_once(const bench_overlap_run *r, const bench_work *work)
{
    const bench_job *job = r->job;
    fsdp_request    *request;

    BENCH_TRY(bench_issue(&r->what, job->world->ctx, job->buffers.in, bench_buffers_result(&job->buffers, &r->what),
                          &request));
    if (work) {
        bench_work_do(work);
    }
    return fsdp_wait(request);
}

static fsdp_status mpi_once(const bench_overlap_run *r, const bench_work *work)
{
    const bench_job *job     = r->job;
    MPI_Request      request = MPI_REQUEST_NULL;

    bench_baseline_issue(&r->what, job->world->comm, job->buffers.in, job->buffers.out, &request);
    if (work) {
        bench_work_do(work);
    }
    bench_baseline_wait(&request);
    return FSDP_OK;
}

/* SECONDS of one issue, compute (unless NULL) and wait. */
static fsdp_status time_side(const bench_overlap_run *r, bench_side s, const bench_work *work, double *seconds)
{
    double begin;

    MPI_Barrier(r->job->world->comm);
    begin = bench_now();
    for (size_t i = 0; i < r->iterations[s]; i++) {
        BENCH_TRY(s == BENCH_OURS ? ours_once(r, work) : mpi_once(r, work));
    }
    *seconds = bench_max(r->job->world, bench_now() - begin) / (double)r->iterations[s];
    return FSDP_OK;
}

/* Each with a barrier, as a collective is one: where ranks share cores unevenly, all wait for the slowest each time. */
static double time_work(const bench_overlap_run *r, bench_side s, const bench_work *work)
{
    double begin;

    MPI_Barrier(r->job->world->comm);
    begin = bench_now();
    for (size_t i = 0; i < r->iterations[s]; i++) {
        bench_work_do(work);
        MPI_Barrier(r->job->world->comm);
    }
    return bench_max(r->job->world, bench_now() - begin) / (double)r->iterations[s];
}

static fsdp_status repetition(bench_overlap_run *r, bench_side s, size_t i)
{
    const bench_world *world    = r->job->world;
    bench_trial       *t        = &r->trials[s];
    double             progress = 0, cpu = cpu_seconds(), busy = busy_seconds(r->cores);
    bench_work         work;

    BENCH_TRY(time_side(r, s, NULL, &t->comm[i]));
    cpu  = bench_machine_sum(world, cpu_seconds() - cpu);
    busy = bench_max(world, busy_seconds(r->cores) - busy);
    cpu  = busy > cpu ? busy : cpu;
    if (s == BENCH_OURS) {
        r->usage.ceiling[i] = bench_clamp(1 - cpu / (t->comm[i] * (double)r->iterations[s] * r->cores));
        progress            = fsdp_progress_cpu_seconds(world->ctx);
    }
    work          = bench_work_make(world, r->job->options->overlap_compute, t->comm[i]);
    t->compute[i] = time_work(r, s, &work);
    if (s == BENCH_OURS) {
        progress = fsdp_progress_cpu_seconds(world->ctx);
    }
    BENCH_TRY(time_side(r, s, &work, &t->total[i]));
    if (s == BENCH_OURS) {
        r->usage.progress[i] =
            (fsdp_progress_cpu_seconds(world->ctx) - progress) / (t->total[i] * (double)r->iterations[s]);
    }
    t->hidden[i] = bench_clamp(1 - (t->total[i] - t->compute[i]) / t->comm[i]);
    return FSDP_OK;
}

/* How often a block does the communication alone. */
static fsdp_status count_communication(bench_overlap_run *r, bench_side s)
{
    const bench_options *o = r->job->options;
    double               seconds;

    if (s == BENCH_OURS) {
        return bench_probe_ours(r->job, &r->what, &r->iterations[s]);
    }
    r->iterations[s] = o->warmup ? o->warmup : 1;
    BENCH_TRY(time_side(r, s, NULL, &seconds));
    BENCH_TRY(time_side(r, s, NULL, &seconds));
    r->iterations[s] = bench_block_iterations(o, seconds);
    return FSDP_OK;
}

/* How often a block does all of it: to sleep takes much longer than a short operation that it is meant to last as long as. */
static fsdp_status count_iterations(bench_overlap_run *r, bench_side s)
{
    const bench_options *o = r->job->options;
    double               seconds;

    BENCH_TRY(count_communication(r, s));
    if (o->iterations) {
        return FSDP_OK;
    }
    BENCH_TRY(time_side(r, s, NULL, &seconds));
    const bench_work work = bench_work_make(r->job->world, o->overlap_compute, seconds);
    r->iterations[s]      = 1;
    BENCH_TRY(time_side(r, s, &work, &seconds));
    while (seconds * (double)r->iterations[s] < BENCH_PROBE_SECONDS) {
        r->iterations[s] *= 4;
        BENCH_TRY(time_side(r, s, &work, &seconds));
    }
    r->iterations[s] = bench_block_iterations(o, seconds);
    return FSDP_OK;
}

static fsdp_status measure_case(void *run, const bench_case *c)
{
    bench_overlap_run *r   = run;
    const int          can = bench_baseline_can(c);

    r->what                  = *c;
    r->iterations[BENCH_MPI] = 0;
    BENCH_TRY(count_iterations(r, BENCH_OURS));
    if (can) {
        BENCH_TRY(count_iterations(r, BENCH_MPI));
    }
    for (size_t i = 0; i < r->job->options->repeat; i++) {
        BENCH_TRY(repetition(r, BENCH_OURS, i));
        if (can) {
            BENCH_TRY(repetition(r, BENCH_MPI, i));
        }
    }
    return FSDP_OK;
}

static void report(void *run)
{
    bench_overlap_row(run);
}

static fsdp_status overlap_all(bench_overlap_run *r)
{
    static const bench_case_steps steps = {BENCH_BROADCAST, bench_overlap_head, measure_case, report};

    BENCH_TRY(bench_cases_run(r->job, &steps, r));
    bench_overlap_foot(r);
    return FSDP_OK;
}

fsdp_status bench_overlap(bench_job *job)
{
    const size_t      n      = job->options->repeat;
    bench_overlap_run r      = {.job = job, .cores = bench_machine_cores(job->world)};
    double           *values = calloc(10 * n, sizeof *values);
    fsdp_status status = bench_agree(job->world, values != NULL, "no memory for the samples; use a smaller --repeat");

    if (status == FSDP_OK) {
        r.trials[BENCH_OURS] = (bench_trial){values, values + n, values + 2 * n, values + 3 * n};
        r.trials[BENCH_MPI]  = (bench_trial){values + 4 * n, values + 5 * n, values + 6 * n, values + 7 * n};
        r.usage              = (bench_usage){values + 8 * n, values + 9 * n};
        status               = overlap_all(&r);
    }
    free(values);
    return status;
}
