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
} bench_cell;

typedef struct bench_tuning {
    int         nodes;
    size_t      n; /* sizes, in rising order */
    bench_cell *cells[BENCH_N_TUNED][BENCH_N_MEMORIES];
} bench_tuning;

/** The fastest of a cell; FSDP_ALGO_AUTO if none serves it. */
fsdp_algorithm bench_fastest(const bench_cell *cell);

/** The times, as a table for people. */
void bench_tuning_print(const bench_tuning *tuning, FILE *file);

/** The rows of what was timed. */
void bench_tuning_write(const bench_tuning *tuning, FILE *file);

/** The rows of the library's own table, for what was not timed: a tuning file replaces all of it. @return 0 on failure */
int bench_tuning_write_rest(FILE *file);

#endif
