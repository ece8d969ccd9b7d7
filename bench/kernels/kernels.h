/**
 * @file
 * What the library's kernels move on GPU memory, beside copies that move as much.
 */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include "bench/job/job.h"

/** Collective. Adds to `wrong` the 4-byte words of results that were not as they must be. */
fsdp_status bench_kernels(bench_job *job, size_t *wrong);

#endif
