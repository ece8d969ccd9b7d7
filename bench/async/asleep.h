/**
 * @file
 * An operation that the progress thread carries out alone: the caller issues it, sleeps, and looks only at the state of the
 * request, where fsdp_test() would carry it further.
 */
#ifndef BENCH_ASLEEP_H
#define BENCH_ASLEEP_H

#include "bench/base/collective.h"

/** All 0 before the first operation of a kind. */
typedef struct bench_asleep {
    double usual;      /* SECONDS that one takes: the least so far */
    double first;      /* SECONDS from the issue to the first look at it */
    double resolution; /* SECONDS by which the last time may be off, either way */
} bench_asleep;

/**
 * Issues an operation and ends it when it is done.
 *
 * The time is the middle between the last look that found it under way and the first that found it done. Few looks: the
 * caller sleeps for most of what is usual, then naps. Afterwards it sleeps as long as is usual, so that what it does next
 * does not help peers whose own operation is not over. Collective.
 *
 * @param[out] seconds  from the issue to the end, on this rank
 */
fsdp_status bench_asleep_run(bench_asleep *asleep, const bench_case *c, fsdp_context *ctx, void *in, void *out,
                             double *seconds);

#endif
