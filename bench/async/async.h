/**
 * @file
 * The progress thread alone: nonblocking collectives whose caller sleeps, against blocking ones; and beside compute.
 */
#ifndef BENCH_ASYNC_H
#define BENCH_ASYNC_H

#include "bench/job/job.h"

/** FSDP_ERR_ARG, with a line that says what to do, if --async is asked for and there is no progress thread. Collective. */
fsdp_status bench_async_possible(const bench_world *world, const bench_options *options);

/** Collective. Adds to `wrong` the elements that were not as they must be. */
fsdp_status bench_async(bench_job *job, size_t *wrong);

#endif
