/**
 * @file
 * The plain run as a drawing, by gnuplot: time, bandwidth and ratio against size.
 */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include "bench/job/measure.h"

/** Collective: FSDP_ERR_ARG on all ranks if there is no gnuplot. To be asked before the run. */
fsdp_status bench_plot_possible(const bench_world *world, const bench_options *options);

/** Collective. Writes the SVG file; FSDP_ERR_ARG on all ranks if that failed. */
fsdp_status bench_plot(const bench_job *job, const bench_result *results, size_t n);

#endif
