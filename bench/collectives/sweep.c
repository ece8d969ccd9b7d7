#include "bench/collectives/sweep.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/collectives/plot.h"
#include "bench/collectives/summary.h"
#include "bench/collectives/table.h"
#include "bench/job/cases.h"
#include "bench/job/measure.h"

typedef struct sweep_run {
    bench_job    *job;
    bench_result *results; /* of every case */
    size_t        n;       /* reported so far */
} sweep_run;

static fsdp_status measure_case(void *run, const bench_case *c)
{
    const sweep_run *r = run;

    return bench_measure(r->job, c, &r->results[r->n]);
}

static void report(void *run)
{
    sweep_run          *r      = run;
    const bench_result *result = &r->results[r->n++];

    bench_table_row(r->job, result);
    bench_table_record(r->job, result);
}

static const bench_case_steps STEPS = {BENCH_N_COLLECTIVES, bench_table_head, measure_case, report};

static fsdp_status sweep_all(sweep_run *r, size_t *wrong)
{
    BENCH_TRY(bench_cases_run(r->job, &STEPS, r));
    bench_table_foot(r->job);

    const bench_summary summary = bench_summary_of(r->results, r->n, r->job->limits.memory);
    *wrong += summary.wrong;
    bench_summary_record(&summary, &r->job->records);
    if (r->job->world->rank == 0) {
        bench_summary_print(&summary, stdout);
    }
    return r->job->options->plot ? bench_plot(r->job, r->results, r->n) : FSDP_OK;
}

fsdp_status bench_sweep(bench_job *job, size_t *wrong)
{
    sweep_run   r = {.job = job, .results = calloc(bench_cases_count(job, &STEPS), sizeof *r.results)};
    fsdp_status status;

    status = bench_agree(job->world, r.results != NULL, "no memory for the results; use a larger --factor");
    status = status == FSDP_OK ? sweep_all(&r, wrong) : status;
    free(r.results);
    return status;
}
