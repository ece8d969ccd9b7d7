/**
 * @file
 * Inputs whose results are known without communication, and the comparison of every element with them.
 *
 * Values are small integers made from (rank, index, pattern), such that sums, products and their quotients are exact in
 * every element type, whatever the order and the rounding in between.
 */
#ifndef BENCH_CHECK_H
#define BENCH_CHECK_H

#include "bench/base/collective.h"
#include "bench/base/world.h"
#include "bench/compare/buffers.h"

/** Writes this rank's input, and nonsense to the output where that lies elsewhere. Local. */
void bench_fill(const bench_case *c, int rank, unsigned pattern, void *in, void *out);

/** ELEMENTS of this rank's output that are not what bench_fill() on all ranks must give. Local. */
size_t bench_count_wrong(const bench_case *c, int rank, unsigned pattern, const void *out);

/** Runs the collective on a new pattern. Collective. Adds to `wrong` the number of wrong elements over all ranks. */
fsdp_status bench_check(const bench_case *c, const bench_world *world, const bench_buffers *buffers, unsigned pattern,
                        size_t *wrong);

#endif
