/**
 * @file
 * The library between two nodes, beside the least that point-to-point messages need and MPI's collectives.
 */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include "bench/job/job.h"

/** FSDP_ERR_ARG, with a line that says what to do, if --floor is asked for and this is not two nodes of one rank. Collective. */
fsdp_status bench_floor_possible(const bench_world *world, const bench_options *options);

/** Collective. Adds to `wrong` the elements that were not as they must be. */
fsdp_status bench_floor(bench_job *job, size_t *wrong);

#endif
