/**
 * @file
 * What the flight recorder costs (FSDP_RECORD): CPU time per operation of the recorder alone, and an operation of 8 bytes with
 * and without it.
 */
#ifndef BENCH_RECORD_H
#define BENCH_RECORD_H

#include "bench/job/job.h"

/** Collective. */
fsdp_status bench_record(bench_job *job);

#endif
