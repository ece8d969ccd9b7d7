/**
 * @file
 * What is printed of steps of pipelines.
 */
#ifndef BENCH_PIPELINE_REPORT_H
#define BENCH_PIPELINE_REPORT_H

#include "bench/job/job.h"

typedef struct bench_pipeline_result {
    const char *schedule;
    int         ranks, stages, micros;
    double      formula, simulated,
        measured;   /* SECONDS of a step; the first two without and with transfers. Formula below 0: none */
    double busy;    /* SECONDS of it that a rank computes */
    double waiting; /* share of the measured step, of the rank that waits least */
} bench_pipeline_result;

void bench_pipeline_head(const bench_job *job, double action, size_t bytes, double transfer);
void bench_pipeline_row(bench_job *job, const bench_pipeline_result *r);

#endif
