/**
 * @file
 * What is measured and said once, before the results.
 */
#ifndef BENCH_HEADER_H
#define BENCH_HEADER_H

#include "bench/job/job.h"

/** The rates of the link and of memory, unless the options have them or the memory is a GPU's. Collective. */
fsdp_status bench_limits_measure(bench_job *job);

/** The rate of copies of so many BYTES between the buffers, where they are on a GPU. Collective. */
void bench_gpu_limits_measure(bench_job *job, size_t bytes);

/** Prints the header and puts it into the JSON file. Collective. */
void bench_header_print(bench_job *job);

/** "multiple" and so on. */
const char *bench_level_name(int level);

/** The name of MPI's columns: for this job, and for the twin. */
const char *bench_level_here(const bench_job *job);
const char *bench_level_other(const bench_job *job);

#endif
