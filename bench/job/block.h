/**
 * @file
 * Blocks of iterations, which sides are measured in, in alternation.
 */
#ifndef BENCH_BLOCK_H
#define BENCH_BLOCK_H

#include <stddef.h>

#include "bench/base/options.h"

/** A probe that takes less than so many SECONDS says too little. */
#define BENCH_PROBE_SECONDS 0.002

/** How many iterations a block should have, given that one takes `seconds`. */
size_t bench_block_iterations(const bench_options *options, double seconds);

#endif
