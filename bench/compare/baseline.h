/**
 * @file
 * MPI's own collectives, on the same buffers.
 */
#ifndef BENCH_BASELINE_H
#define BENCH_BASELINE_H

#include "bench/base/collective.h"

/**
 * Whether MPI has this at all: counts are `int`, and there is no reduction of bf16 and f16. FSDP_AVG counts as its sum,
 * which is what MPI has.
 */
int bench_baseline_can(const bench_case *c);

void bench_baseline_run(const bench_case *c, MPI_Comm comm, void *in, void *out);

/** allgather, reduce_scatter and allreduce only. */
void bench_baseline_issue(const bench_case *c, MPI_Comm comm, void *in, void *out, MPI_Request *request);
void bench_baseline_wait(MPI_Request *request);

#endif
