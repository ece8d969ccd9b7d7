/**
 * @file
 * What every kind of run works with, and the sizes it goes through.
 */
#ifndef BENCH_JOB_H
#define BENCH_JOB_H

#include "bench/base/collective.h"
#include "bench/base/options.h"
#include "bench/base/progress_bar.h"
#include "bench/base/records.h"
#include "bench/base/world.h"
#include "bench/compare/buffers.h"
#include "bench/machine/bandwidth.h"
#include "bench/machine/bound.h"
#include "bench/machine/gpu.h"
#include "bench/machine/host.h"
#include "bench/twin/twin.h"

typedef struct bench_job {
    const bench_options *options;
    bench_world         *world;
    bench_gpu           *gpu; /* of --device gpu; NULL without */
    bench_buffers        buffers;
    bench_twin           twin;
    bench_bandwidth      bandwidth;
    bench_limits         limits;
    bench_host           host;
    bench_records        records;
    bench_progress_bar   bar;
    unsigned             pattern; /* of the last check */
    size_t               turn;    /* of the next iteration: see bench_buffers_turn() */
} bench_job;

/** The case of nearly `bytes` that the options describe. */
bench_case bench_job_case(const bench_job *job, bench_collective collective, size_t bytes);

/** Whether the iterations of this run work on one part of the buffers after the other. */
int bench_job_takes_turns(const bench_options *options);

/** BYTES that any case of the run needs in one buffer. */
size_t bench_job_most_bytes(const bench_world *world, const bench_options *options);

/** BYTES of one buffer, with the room that iterations need to take turns. Collective. */
size_t bench_job_buffer_bytes(const bench_world *world, const bench_options *options);

/** Whether the options ask for a collective. */
int bench_job_wants(const bench_job *job, bench_collective collective);

/** BYTES that follow on `bytes`, 0: before the first; the last is --end, whatever --factor is. @return 0 after that */
size_t bench_next_size(const bench_options *options, size_t bytes);

/**
 * Goes through the sizes of a collective, each once though several may be rounded to it.
 *
 * @param[in,out] c  the last case; all 0 before the first one
 * @return 0 after the last
 */
int bench_job_next_case(const bench_job *job, bench_collective collective, bench_case *c, size_t *bytes);

/** How many cases that gives. */
size_t bench_job_count_cases(const bench_job *job, bench_collective collective);

#endif
