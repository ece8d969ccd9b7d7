#include "bench/collectives/sweep.h"

#include <stdlib.h>

#include "bench/collectives/plot.h"
#include "bench/collectives/table.h"
#include "bench/job/measure.h"

static fsdp_status sweep_collective(bench_job *job, bench_collective collective, bench_result *results, size_t *n)
{
    bench_case c = {0};
    size_t     bytes;

    bench_progress_bar_clear(&job->bar);
    bench_table_head(job, collective);
    while (bench_job_next_case(job, collective, &c, &bytes)) {
        BENCH_TRY(bench_measure(job, &c, &results[*n]));
        bench_progress_bar_clear(&job->bar);
        bench_table_row(job, &results[*n]);
        bench_table_record(job, &results[*n]);
        bench_progress_bar_step(&job->bar);
        ++*n;
    }
    return FSDP_OK;
}

static fsdp_status sweep_all(bench_job *job, bench_result *results, size_t *wrong)
{
    size_t n = 0;

    for (int c = 0; c < BENCH_N_COLLECTIVES; c++) {
        if (bench_job_wants(job, (bench_collective)c)) {
            BENCH_TRY(sweep_collective(job, (bench_collective)c, results, &n));
        }
    }
    bench_progress_bar_clear(&job->bar);
    for (size_t i = 0; i < n; i++) {
        *wrong += results[i].wrong;
    }
    bench_table_foot(job);
    return job->options->plot ? bench_plot(job, results, n) : FSDP_OK;
}

fsdp_status bench_sweep(bench_job *job, size_t *wrong)
{
    size_t        n = 0;
    bench_result *results;
    fsdp_status   status;

    for (int c = 0; c < BENCH_N_COLLECTIVES; c++) {
        n += bench_job_wants(job, (bench_collective)c) ? bench_job_count_cases(job, (bench_collective)c) : 0;
    }
    results = calloc(n, sizeof *results);
    BENCH_TRY(bench_agree(job->world, results != NULL, "no memory for the results; use a larger --factor"));
    bench_progress_bar_open(&job->bar, job->world, n);
    status = sweep_all(job, results, wrong);
    free(results);
    return status;
}
