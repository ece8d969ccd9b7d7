/**
 * @file
 * The drop-in: plain MPI against MPI with libfsdp_mpi.so preloaded, in jobs that alternate, beside plain MPI against itself.
 */
#ifndef BENCH_DROP_IN_H
#define BENCH_DROP_IN_H

#include "bench/job/job.h"

/** Collective. FSDP_ERR_ARG on all ranks, with a line that says what to do, if the jobs cannot be started. */
fsdp_status bench_drop_in(bench_job *job);

#endif
