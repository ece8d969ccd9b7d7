/**
 * @file
 * The beginning and the end of a run.
 */
#ifndef BENCH_OPEN_H
#define BENCH_OPEN_H

#include "bench/job/job.h"

/** Opens the context on `world`, with FSDP settings as the options say and `config` has them. Collective. */
fsdp_status bench_context_open(bench_world *world, const bench_options *options, fsdp_config *config);

/** Collective. Whatever is returned, bench_job_close() follows. */
fsdp_status bench_job_open(bench_job *job, bench_world *world, const bench_options *options);

/** Collective. FSDP_ERR_ARG on all ranks if results could not be written. */
fsdp_status bench_job_close(bench_job *job);

#endif
