/**
 * @file
 * What every kind of run works with, and the sizes it goes through.
 */
#ifndef BENCH_JOB_H
#define BENCH_JOB_H

#include "bandwidth.h"
#include "bound.h"
#include "buffers.h"
#include "collective.h"
#include "gpu.h"
#include "options.h"
#include "progress_bar.h"
#include "records.h"
#include "twin.h"
#include "world.h"

typedef struct bench_job {
    const bench_options *options;
    bench_world         *world;
    bench_gpu           *gpu; /* of --device gpu; NULL without */
    bench_buffers        buffers;
    bench_twin           twin;
    bench_bandwidth      bandwidth;
    bench_limits         limits;
    bench_records        records;
    bench_progress_bar   bar;
    unsigned             pattern; /* of the last check */
} bench_job;

/** Opens the context on `world`, with FSDP settings as the options say and `config` has them. Collective. */
fsdp_status bench_context_open(bench_world *world, const bench_options *options, fsdp_config *config);

/** Collective. Whatever is returned, bench_job_close() follows. */
fsdp_status bench_job_open(bench_job *job, bench_world *world, const bench_options *options);

/** Collective. FSDP_ERR_ARG on all ranks if results could not be written. */
fsdp_status bench_job_close(bench_job *job);

/** The case of nearly `bytes` that the options describe. */
bench_case bench_job_case(const bench_job *job, bench_collective collective, size_t bytes);

/** BYTES that any case of the run needs in one buffer. */
size_t bench_job_most_bytes(const bench_world *world, const bench_options *options);

/** Whether the options ask for a collective. */
int bench_job_wants(const bench_job *job, bench_collective collective);

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
