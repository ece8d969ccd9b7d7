/**
 * @file
 * What a training step costs beside its communication and its compute, with units gathered ahead and without.
 */
#ifndef BENCH_STEP_H
#define BENCH_STEP_H

#include "bench/job/job.h"

/** Collective. Adds to `wrong` the number of wrong elements. */
fsdp_status bench_step(bench_job *job, size_t *wrong);

#endif
