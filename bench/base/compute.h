/**
 * @file
 * Compute to hide communication behind.
 */
#ifndef BENCH_COMPUTE_H
#define BENCH_COMPUTE_H

#include <stdint.h>

#include "bench/base/options.h"
#include "bench/base/world.h"

typedef struct bench_work {
    int      kind;    /* a bench_compute */
    double   seconds; /* that it is meant to take */
    uint64_t turns;   /* of the loop, for BENCH_COMPUTE_CPU */
} bench_work;

/** Compute of about `seconds`, with all ranks at it. Collective. */
bench_work bench_work_make(const bench_world *world, int kind, double seconds);

void bench_work_do(const bench_work *work);

#endif
