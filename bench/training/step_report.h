/**
 * @file
 * What a run of steps has measured, and how it is printed and recorded.
 */
#ifndef BENCH_STEP_REPORT_H
#define BENCH_STEP_REPORT_H

#include "bench/job/job.h"

/** One of the two models. Each array has a value per repetition: SECONDS, and times over what the step may take. */
typedef struct bench_step_side {
    double *comm, *step, *ratio;
    size_t  iterations;
} bench_step_side;

typedef struct bench_step_run {
    bench_job      *job;
    double         *compute;
    bench_step_side ahead, behind; /* as FSDP_PREFETCH says, and without */
    size_t          wrong;
    int             checked;
} bench_step_run;

/** Only rank 0 prints. */
void bench_step_head(const bench_step_run *r);
void bench_step_row(const bench_step_run *r);

#endif
