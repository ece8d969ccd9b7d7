/**
 * @file
 * What all rows of the plain run come to: nccl-tests' last lines, and whether the machine was as fast throughout.
 */
#ifndef BENCH_SUMMARY_H
#define BENCH_SUMMARY_H

#include <stdio.h>

#include "bench/job/measure.h"

typedef struct bench_summary {
    size_t wrong; /* elements, of all rows that were checked */
    int    checked;
    double busbw;                     /* GB/s, the mean over the rows */
    double memory_least, memory_most; /* BYTES per second of a node, over all blocks and the measurement before them */
} bench_summary;

/** `memory`: what was measured before the rows. Local, as all that follows. */
bench_summary bench_summary_of(const bench_result *results, size_t n, double memory);

/** With a warning where the memory was not as fast throughout. */
void bench_summary_print(const bench_summary *summary, FILE *file);

/** For the JSON file. */
void bench_summary_record(const bench_summary *summary, bench_records *records);

#endif
