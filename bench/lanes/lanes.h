/**
 * @file
 * A sum of one number, alone and while gathers are under way; and these gathers, alone and beside such sums.
 */
#ifndef BENCH_LANES_H
#define BENCH_LANES_H

#include "bench/job/job.h"

/** FSDP_ERR_ARG, with a line that says what to do, if --lanes is asked for and there is no progress thread. Collective. */
fsdp_status bench_lanes_possible(const bench_world *world, const bench_options *options);

/** Collective. Adds to `wrong` the elements that were not as they must be. */
fsdp_status bench_lanes(bench_job *job, size_t *wrong);

#endif
