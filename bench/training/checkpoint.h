/**
 * @file
 * Saving and loading a state, beside what `dd` makes of the same file system, and while steps go on.
 */
#ifndef BENCH_CHECKPOINT_H
#define BENCH_CHECKPOINT_H

#include "bench/job/job.h"

/** Collective. Adds to `wrong` the number of loads that have not restored what was saved. */
fsdp_status bench_checkpoint(bench_job *job, size_t *wrong);

#endif
