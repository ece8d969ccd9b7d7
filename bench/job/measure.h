/**
 * @file
 * Times the library and MPI in alternation, block by block.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "bench/job/job.h"

/** MPI's side of a comparison. */
typedef struct bench_against {
    double seconds;                 /* per iteration, the median over the blocks; below 0: not measured */
    double best, worst;             /* the least and the most of these */
    double ratio;                   /* of the medians, MPI / ours */
    double ratio_least, ratio_most; /* over the pairs of blocks */
} bench_against;

typedef struct bench_result {
    bench_case    what;
    double        seconds;     /* per iteration, the median over the blocks */
    double        best, worst; /* the least and the most of these */
    size_t        iterations;
    size_t        wrong; /* elements, over all ranks */
    int           checked;
    bench_against here;         /* MPI in this job */
    bench_against other;        /* MPI in the twin, at the other thread level */
    double        memory;       /* BYTES per second of a node, which the bound rests on: the most beside a block */
    double        memory_least; /* the least beside a block */
    char          algorithm[32];
} bench_result;

/** The part of the buffers that the next iteration of a case works on: another each time, if they take turns. */
bench_buffers bench_next_buffers(bench_job *job, const bench_case *c);

/** SECONDS per iteration of the library's blocking form, on the slowest rank. Collective. */
fsdp_status bench_time_ours(bench_job *job, const bench_case *c, size_t iterations, double *seconds);
double      bench_time_mpi(bench_job *job, const bench_case *c, size_t iterations);

/** Warms up and finds how many iterations a block of the library's should have. Collective. */
fsdp_status bench_probe_ours(bench_job *job, const bench_case *c, size_t *iterations);

/** Only the library: the median over the blocks, checked as the options say. Collective. */
fsdp_status bench_measure_ours(bench_job *job, const bench_case *c, bench_result *result);

/** The library and MPI, in this job and in the twin. Collective. */
fsdp_status bench_measure(bench_job *job, const bench_case *c, bench_result *result);

#endif
