/**
 * @file
 * What was timed, and the tuning file made from it.
 */
#ifndef BENCH_TUNING_H
#define BENCH_TUNING_H

#include <stdio.h>

#include "bench/job/job.h"

#define BENCH_N_ALGORITHMS FSDP_N_ALGORITHMS
#define BENCH_N_TUNED      3 /* allgather, reduce_scatter, allreduce: the first of bench_collective */
#define BENCH_N_MEMORIES   2

/** SECONDS by fsdp_algorithm; 0 where it does not serve the case. */
typedef struct bench_cell {
    size_t bytes;
    double seconds[BENCH_N_ALGORITHMS];
    int    not_in_halves; /* FSDP_ALGO_HALVES does not count */
} bench_cell;

typedef struct bench_tuning {
    int         nodes;
    size_t      n; /* sizes, in rising order */
    bench_cell *cells[BENCH_N_TUNED][BENCH_N_MEMORIES];
} bench_tuning;

/** The fastest of a cell; FSDP_ALGO_AUTO if none serves it. */
fsdp_algorithm bench_fastest(const bench_cell *cell);

/**
 * Whether an allreduce goes in halves is decided before ranks know of each other's memory: where that is not the fastest for both
 * kinds, it does not count for either.
 */
void bench_tuning_settle(bench_tuning *tuning);

/** The times, as a table for people. */
void bench_tuning_print(const bench_tuning *tuning, FILE *file);

/** The rows of what was timed. */
void bench_tuning_write(const bench_tuning *tuning, FILE *file);

/**
 * The rows of a context's table, for what was not timed, since a tuning file replaces all of them: those for what caches hold, or the
 * others. @return 0 on failure
 */
int bench_tuning_write_library(const fsdp_context *ctx, int of_caches, FILE *file);

#endif
