/**
 * @file
 * Times every algorithm and writes the fastest to a tuning file.
 */
#ifndef BENCH_TUNE_H
#define BENCH_TUNE_H

#include "bench/job/job.h"

/** Collective. Adds to `wrong` the elements that were not as they must be. */
fsdp_status bench_tune(bench_job *job, size_t *wrong);

#endif
