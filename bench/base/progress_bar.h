/**
 * @file
 * A bar on stderr.
 */
#ifndef BENCH_PROGRESS_BAR_H
#define BENCH_PROGRESS_BAR_H

#include "bench/base/options.h"
#include "bench/base/world.h"

typedef struct bench_progress_bar {
    int    shown;
    size_t done, total;
} bench_progress_bar;

/** `progress`: a bench_progress. Drawn by rank 0. */
void bench_progress_bar_open(bench_progress_bar *bar, const bench_world *world, int progress, size_t total);

/** One step more. */
void bench_progress_bar_step(bench_progress_bar *bar);

/** Takes the bar away, before anything else is printed; the next step draws it again. */
void bench_progress_bar_clear(const bench_progress_bar *bar);

#endif
