/**
 * @file
 * What an overlap run has measured, and how it is printed and recorded.
 */
#ifndef BENCH_OVERLAP_REPORT_H
#define BENCH_OVERLAP_REPORT_H

#include "bench/job/job.h"

typedef enum bench_side { BENCH_OURS, BENCH_MPI, BENCH_N_SIDES } bench_side;

/* One side of one size. Each array has a value per repetition. */
typedef struct bench_trial {
    double *comm, *compute, *total, *hidden;
} bench_trial;

/* What communication alone costs besides time, per repetition. */
typedef struct bench_usage {
    double *ceiling;  /* the part of the machine's cores that communication leaves free */
    double *progress; /* CPU time of the progress thread / time, while compute goes on */
} bench_usage;

typedef struct bench_overlap_run {
    bench_job  *job;
    bench_case  what;
    size_t      iterations[BENCH_N_SIDES];
    int         cores;
    bench_trial trials[BENCH_N_SIDES];
    bench_usage usage;
} bench_overlap_run;

/** Between 0 and 1. */
double bench_clamp(double share);

/** Only rank 0 prints. */
void bench_overlap_head(const bench_job *job, bench_collective collective);
void bench_overlap_row(const bench_overlap_run *r);
void bench_overlap_foot(const bench_overlap_run *r);

#endif
