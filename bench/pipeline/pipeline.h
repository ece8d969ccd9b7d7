/**
 * @file
 * Steps of pipelines whose compute takes a given time, beside what the formula and the simulation say: per schedule and micro-batches.
 */
#ifndef BENCH_PIPELINE_H
#define BENCH_PIPELINE_H

#include "bench/job/job.h"

/** Collective. Adds to `wrong` the number of messages that have other data than was sent. */
fsdp_status bench_pipeline(bench_job *job, size_t *wrong);

#endif
