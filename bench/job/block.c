#include "bench/job/block.h"

#define BLOCK_SECONDS     0.05
#define CPU_BLOCK_SECONDS 0.4 /* the kernel counts busy time in ticks of 10 ms, and shares cores over several slices */
#define LEAST_ITERATIONS  3
#define MOST_ITERATIONS   1e6

size_t bench_block_iterations(const bench_options *options, double seconds)
{
    const int    beside = (options->overlap || options->async) && options->overlap_compute == BENCH_COMPUTE_CPU;
    const double block  = beside ? CPU_BLOCK_SECONDS : BLOCK_SECONDS;
    const double n      = block / (seconds > 0 ? seconds : 1e-9);

    if (options->iterations) {
        return options->iterations;
    }
    return n < LEAST_ITERATIONS ? LEAST_ITERATIONS : n > MOST_ITERATIONS ? (size_t)MOST_ITERATIONS : (size_t)n;
}
