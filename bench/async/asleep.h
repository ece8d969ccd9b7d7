/**
 * @file
 * Operations that the progress thread carries out alone: the caller issues some and sleeps; the flight recorder says when they ended.
 */
#ifndef BENCH_ASLEEP_H
#define BENCH_ASLEEP_H

#include "bench/base/collective.h"

/** Operations issued at once, so that the time to begin and to end them counts less. */
#define BENCH_ASLEEP_AT_ONCE 4

/** All 0 before the first operations of a kind. */
typedef struct bench_asleep {
    double usual; /* SECONDS that they take, slow ones rather than fast ones */
} bench_asleep;

/** Whether the context keeps a record, without which the end of an operation is not known. */
int bench_asleep_can(const fsdp_context *ctx);

/**
 * Issues the operation so many times, of the same data into the same place, and ends all when they are done.
 *
 * A caller that looked earlier would take the core from the thread: on a virtual machine, for up to 50 us each time. So it sleeps
 * half as long again as is usual, by when its peers have mostly ended theirs, too, and nothing that it does next helps them.
 * Collective.
 *
 * @param[out] seconds  for each operation, from the first issue to the last end, on this rank
 */
fsdp_status bench_asleep_run(bench_asleep *asleep, const bench_case *c, fsdp_context *ctx, void *in, void *out,
                             double *seconds);

#endif
