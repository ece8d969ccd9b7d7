/**
 * @file
 * What a unit of so many parameters costs to gather and to reduce on these ranks, and the smallest shard that pays.
 */
#ifndef BENCH_SHARDS_H
#define BENCH_SHARDS_H

#include "bench/job/job.h"

/** Collective. Adds to `wrong` the elements that were not as they must be. */
fsdp_status bench_shards(bench_job *job, size_t *wrong);

#endif
