/** @file What --drop-in prints and writes to files. */
#ifndef BENCH_DROP_IN_REPORT_H
#define BENCH_DROP_IN_REPORT_H

#include "bench/job/job.h"

/** Medians over the rounds; a ratio is above 1 where plain MPI takes longer. */
typedef struct bench_drop_in_result {
    bench_case what;
    size_t     iterations;
    double     plain, preloaded;   /* SECONDS */
    double     ratio, least, most; /* plain over preloaded, round by round */
    double     control;            /* plain over plain, round by round */
    double     control_least, control_most;
} bench_drop_in_result;

/** What a call costs that is not taken: SECONDS of MPI_Allreduce() of 8 bytes on MPI_COMM_SELF. */
typedef struct bench_drop_in_alone {
    double plain, preloaded, control;
} bench_drop_in_alone;

void bench_drop_in_head(const bench_job *job, bench_collective collective);
void bench_drop_in_row(const bench_job *job, const bench_drop_in_result *result);
void bench_drop_in_record(bench_job *job, const bench_drop_in_result *result);
void bench_drop_in_foot(bench_job *job, const bench_drop_in_alone *alone);

#endif
