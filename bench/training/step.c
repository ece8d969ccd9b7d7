#include "bench/training/step.h"

#include <stdlib.h>

#include "bench/job/block.h"
#include "bench/training/step_model.h"
#include "bench/training/step_report.h"

/* SECONDS of a step, on the slowest rank. */
static fsdp_status time_steps(bench_step_model *m, size_t iterations, const bench_work *work, double *seconds)
{
    double begin;

    MPI_Barrier(m->world.comm);
    begin = bench_now();
    for (size_t i = 0; i < iterations; i++) {
        BENCH_TRY(bench_step_do(m, work));
    }
    *seconds = bench_max(&m->world, bench_now() - begin) / (double)(iterations ? iterations : 1);
    return FSDP_OK;
}

/* SECONDS of the compute of a step. */
static double time_compute(const bench_step_model *m, size_t iterations, const bench_work *work)
{
    double begin;

    MPI_Barrier(m->world.comm);
    begin = bench_now();
    for (size_t i = 0; i < m->options->units * (1 + BENCH_STEP_BACKWARD) * iterations; i++) {
        bench_work_do(work);
    }
    MPI_Barrier(m->world.comm); /* with fewer cores than ranks, some begin when others have ended */
    return bench_max(&m->world, bench_now() - begin) / (double)iterations;
}

/* The first step records the order of units, which the next ones are gathered ahead in. */
static fsdp_status warm_up(bench_step_model *m, bench_step_side *side)
{
    const size_t n = m->options->warmup ? m->options->warmup : 1;
    double       seconds;

    BENCH_TRY(time_steps(m, n, NULL, &seconds));
    BENCH_TRY(time_steps(m, 1, NULL, &seconds));
    side->iterations = bench_block_iterations(m->options, seconds);
    return FSDP_OK;
}

/* Of a forward pass of a unit: as given, or such that a step has as much compute as communication. */
static bench_work make_work(const bench_step_model *m, double comm)
{
    const bench_options *o = m->options;
    const double         seconds =
        o->compute_us ? 1e-6 * (double)o->compute_us : comm / (double)(o->units * (1 + BENCH_STEP_BACKWARD));

    return bench_work_make(&m->world, o->overlap_compute, seconds);
}

static fsdp_status repetition(bench_step_run *r, bench_step_model *ahead, bench_step_model *behind, size_t i)
{
    bench_step_side *a = &r->ahead, *b = &r->behind;
    bench_work       work;

    BENCH_TRY(time_steps(ahead, a->iterations, NULL, &a->comm[i]));
    BENCH_TRY(time_steps(behind, b->iterations, NULL, &b->comm[i]));
    work          = make_work(ahead, a->comm[i]);
    r->compute[i] = time_compute(ahead, a->iterations, &work);
    BENCH_TRY(time_steps(ahead, a->iterations, &work, &a->step[i]));
    BENCH_TRY(time_steps(behind, b->iterations, &work, &b->step[i]));
    a->ratio[i] = a->step[i] / (a->comm[i] > r->compute[i] ? a->comm[i] : r->compute[i]);
    b->ratio[i] = b->step[i] / (b->comm[i] + r->compute[i]);
    return FSDP_OK;
}

static fsdp_status check(bench_step_run *r, bench_step_model *ahead, bench_step_model *behind)
{
    if (r->job->options->no_check || !bench_step_can_check(ahead)) {
        return FSDP_OK;
    }
    r->checked = 1;
    BENCH_TRY(bench_step_check(ahead, &r->wrong));
    return bench_step_check(behind, &r->wrong);
}

static fsdp_status measure(bench_step_run *r, bench_step_model *ahead, bench_step_model *behind)
{
    const size_t n = r->job->options->repeat;

    bench_step_head(r);
    bench_progress_bar_open(&r->job->bar, r->job->world, r->job->options->progress, n);
    BENCH_TRY(check(r, ahead, behind));
    BENCH_TRY(warm_up(ahead, &r->ahead));
    BENCH_TRY(warm_up(behind, &r->behind));
    for (size_t i = 0; i < n; i++) {
        BENCH_TRY(repetition(r, ahead, behind, i));
        bench_progress_bar_step(&r->job->bar);
    }
    BENCH_TRY(check(r, ahead, behind));
    bench_progress_bar_clear(&r->job->bar);
    bench_step_row(r);
    return FSDP_OK;
}

static fsdp_status open_and_measure(bench_step_run *r)
{
    const bench_world   *world   = r->job->world;
    const bench_options *options = r->job->options;
    bench_step_model     ahead, behind = {0};
    fsdp_config          config;
    fsdp_status          status, closed[2];

    fsdp_config_init(&config);
    status = bench_step_model_open(&ahead, world, options, FSDP_SGD, &config);
    if (status == FSDP_OK) {
        config.prefetch = 0;
        status          = bench_step_model_open(&behind, world, options, FSDP_SGD, &config);
    }
    if (status == FSDP_OK) {
        status = measure(r, &ahead, &behind);
    }
    closed[0] = bench_step_model_close(&behind);
    closed[1] = bench_step_model_close(&ahead);
    return status != FSDP_OK ? status : closed[0] != FSDP_OK ? closed[0] : closed[1];
}

fsdp_status bench_step(bench_job *job, size_t *wrong)
{
    const size_t   n      = job->options->repeat;
    bench_step_run r      = {.job = job};
    double        *values = calloc(7 * n, sizeof *values);
    fsdp_status status = bench_agree(job->world, values != NULL, "no memory for the samples; use a smaller --repeat");

    if (status == FSDP_OK) {
        r.compute = values;
        r.ahead   = (bench_step_side){.comm = values + n, .step = values + 2 * n, .ratio = values + 3 * n};
        r.behind  = (bench_step_side){.comm = values + 4 * n, .step = values + 5 * n, .ratio = values + 6 * n};
        status    = open_and_measure(&r);
        *wrong += r.wrong;
    }
    free(values);
    return status;
}
