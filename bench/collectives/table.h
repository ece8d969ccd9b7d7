/**
 * @file
 * The rows of the plain run, as text and as records.
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include "bench/job/measure.h"

/** Only rank 0 prints. */
void bench_table_head(const bench_job *job, bench_collective collective);
void bench_table_row(const bench_job *job, const bench_result *result);
void bench_table_foot(const bench_job *job);

/** The row, for the files. */
void bench_table_record(bench_job *job, const bench_result *result);

/** SECONDS that memory and links allow, with the bandwidth of the row. */
double bench_table_bound(const bench_job *job, const bench_result *result);

#endif
