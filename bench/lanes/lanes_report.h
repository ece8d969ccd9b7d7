/** @file What --lanes prints and writes to files. */
#ifndef BENCH_LANES_REPORT_H
#define BENCH_LANES_REPORT_H

#include "bench/job/job.h"

typedef struct bench_lanes_result {
    bench_case what;              /* the gather */
    size_t     queued;            /* gathers that are issued at once */
    size_t     sums;              /* timed beside them */
    double     alone;             /* SECONDS of a sum with nothing else under way: the median */
    double     median, p90, most; /* SECONDS beside the gathers */
    double     gather_alone;      /* SECONDS of a gather without sums, carried out by the thread */
    double     gather_beside;     /* and with them */
    size_t     wrong;             /* elements */
} bench_lanes_result;

void bench_lanes_head(const bench_job *job);
void bench_lanes_row(const bench_job *job, const bench_lanes_result *result);
void bench_lanes_record(bench_job *job, const bench_lanes_result *result);
void bench_lanes_foot(const bench_job *job);

#endif
