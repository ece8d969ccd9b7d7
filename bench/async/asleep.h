/**
 * @file
 * Operations that the progress thread carries out alone: the caller issues some, sleeps, and looks only at the state of the last
 * request, where fsdp_test() would carry it further.
 */
#ifndef BENCH_ASLEEP_H
#define BENCH_ASLEEP_H

#include "bench/base/collective.h"

/** Operations issued at once: a look takes the core from the thread, and when the last one ends is known to a nap. */
#define BENCH_ASLEEP_AT_ONCE 4

/** All 0 before the first operations of a kind. */
typedef struct bench_asleep {
    double usual;      /* SECONDS that they take: the least so far */
    double first;      /* SECONDS from the issue to the first look at the last one */
    double resolution; /* SECONDS for each operation by which the last time may be off, either way */
} bench_asleep;

/**
 * Issues the operation so many times, of the same data into the same place, and ends all when they are done.
 *
 * The time is the middle between the last look that found it under way and the first that found it done. Few looks: the
 * caller sleeps for most of what is usual, then naps. Afterwards it sleeps as long as one usually takes, so that what it does
 * next does not help peers whose own operation is not over. Collective.
 *
 * @param[out] seconds  for each operation, from the first issue to the last end, on this rank
 */
fsdp_status bench_asleep_run(bench_asleep *asleep, const bench_case *c, fsdp_context *ctx, void *in, void *out,
                             double *seconds);

#endif
