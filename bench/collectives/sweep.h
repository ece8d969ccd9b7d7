/**
 * @file
 * The plain run: every collective over all sizes, the library against MPI and the bound.
 */
#ifndef BENCH_SWEEP_H
#define BENCH_SWEEP_H

#include "bench/job/job.h"

/** Collective. Adds to `wrong` the elements that were not as they must be. */
fsdp_status bench_sweep(bench_job *job, size_t *wrong);

#endif
