/**
 * @file
 * What a run of the progress thread alone has measured, and how it is printed and recorded.
 */
#ifndef BENCH_ASYNC_REPORT_H
#define BENCH_ASYNC_REPORT_H

#include "bench/job/job.h"

/** A case. SECONDS are per operation, the medians over the blocks. */
typedef struct bench_async_result {
    bench_case what;
    double     blocking, alone; /* the caller carries it out; only the thread does */
    double     cpu;             /* of the thread, while it is alone */
    double     share;           /* of a core: that over `alone` */
    double     compute, total;  /* CPU-bound compute, and with an operation behind it; below 0: not measured */
    size_t     iterations;
    size_t     wrong; /* elements, over all ranks */
    int        checked;
    char       algorithm[32];
} bench_async_result;

/** Only rank 0 prints. */
void bench_async_head(const bench_job *job, bench_collective collective);
void bench_async_row(const bench_job *job, const bench_async_result *result);
void bench_async_foot(const bench_job *job);

/** The row, for the files. */
void bench_async_record(bench_job *job, const bench_async_result *result);

#endif
