/**
 * @file
 * What a run against the floor has measured, and how it is printed and recorded.
 */
#ifndef BENCH_FLOOR_REPORT_H
#define BENCH_FLOOR_REPORT_H

#include "bench/floor/plan.h"
#include "bench/job/job.h"

/** What is timed in alternation. MPI twice: how far the two are apart says what a difference means. */
typedef enum bench_floor_side {
    BENCH_FLOOR,
    BENCH_FLOOR_OURS,
    BENCH_FLOOR_MPI,
    BENCH_FLOOR_AGAIN,
    BENCH_FLOOR_SIDES
} bench_floor_side;

/** A case. */
typedef struct bench_floor_result {
    bench_case what;
    bench_plan plan;                       /* the fastest */
    double     seconds[BENCH_FLOOR_SIDES]; /* per iteration, the medians over the blocks; below 0: not measured */
    double     best[BENCH_FLOOR_SIDES];    /* the least of these */
    size_t     iterations[BENCH_FLOOR_SIDES];
    size_t     wrong; /* elements, over all ranks, the library's, the floor's and MPI's */
    int        checked;
    char       algorithm[32]; /* the library's */
} bench_floor_result;

/** The case in which a ratio was least. */
typedef struct bench_floor_least {
    double     ratio; /* 0: none yet */
    bench_case what;
} bench_floor_least;

typedef struct bench_floor_summary {
    bench_floor_least floor, mpi;
    double            apart; /* the largest factor between MPI and MPI */
} bench_floor_summary;

/** Only rank 0 prints. */
void bench_floor_head(const bench_job *job, bench_collective collective);
void bench_floor_row(const bench_job *job, const bench_floor_result *result);
void bench_floor_foot(const bench_job *job, const bench_floor_summary *summary);

/** The row, for the files. */
void bench_floor_record(bench_job *job, const bench_floor_result *result);

/** Takes a result into the summary. */
void bench_floor_summarize(bench_floor_summary *summary, const bench_floor_result *result);

#endif
