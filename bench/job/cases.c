#include "bench/job/cases.h"

size_t bench_cases_count(const bench_job *job, const bench_case_steps *steps)
{
    size_t n = 0;

    for (int c = 0; c < steps->collectives; c++) {
        n += bench_job_wants(job, (bench_collective)c) ? bench_job_count_cases(job, (bench_collective)c) : 0;
    }
    return n;
}

static fsdp_status run_collective(bench_job *job, bench_collective collective, const bench_case_steps *steps, void *run)
{
    bench_case c = {0};
    size_t     bytes;

    bench_progress_bar_clear(&job->bar);
    steps->head(job, collective);
    while (bench_job_next_case(job, collective, &c, &bytes)) {
        BENCH_TRY(steps->measure(run, &c));
        bench_progress_bar_clear(&job->bar);
        steps->report(run);
        bench_progress_bar_step(&job->bar);
    }
    return FSDP_OK;
}

fsdp_status bench_cases_run(bench_job *job, const bench_case_steps *steps, void *run)
{
    bench_progress_bar_open(&job->bar, job->world, job->options->progress, bench_cases_count(job, steps));
    for (int c = 0; c < steps->collectives; c++) {
        if (bench_job_wants(job, (bench_collective)c)) {
            BENCH_TRY(run_collective(job, (bench_collective)c, steps, run));
        }
    }
    bench_progress_bar_clear(&job->bar);
    return FSDP_OK;
}
