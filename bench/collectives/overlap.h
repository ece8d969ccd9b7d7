/**
 * @file
 * How much of the communication compute hides: issue, compute, wait, against compute alone.
 */
#ifndef BENCH_OVERLAP_H
#define BENCH_OVERLAP_H

#include "bench/job/job.h"

/** Collective. */
fsdp_status bench_overlap(bench_job *job);

#endif
