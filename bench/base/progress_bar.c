#include "bench/base/progress_bar.h"

#include <stdio.h>
#include <unistd.h>

#define WIDTH 40

static void draw(const bench_progress_bar *bar)
{
    const size_t filled = bar->total ? WIDTH * bar->done / bar->total : 0;
    char         cells[WIDTH + 1];

    for (size_t i = 0; i < WIDTH; i++) {
        cells[i] = i < filled ? '#' : '.';
    }
    cells[WIDTH] = 0;
    (void)fprintf(stderr, "\r[%s] %zu of %zu", cells, bar->done, bar->total);
    (void)fflush(stderr);
}

void bench_progress_bar_open(bench_progress_bar *bar, const bench_world *world, int progress, size_t total)
{
    const int wanted = progress == BENCH_PROGRESS_ON || (progress == BENCH_PROGRESS_AUTO && isatty(STDERR_FILENO));

    *bar = (bench_progress_bar){.shown = world->rank == 0 && wanted, .total = total};
    if (bar->shown) {
        draw(bar);
    }
}

void bench_progress_bar_step(bench_progress_bar *bar)
{
    bar->done++;
    if (bar->shown && bar->done < bar->total) {
        draw(bar);
    }
}

void bench_progress_bar_clear(const bench_progress_bar *bar)
{
    if (bar->shown) {
        (void)fprintf(stderr, "\r\033[K");
        (void)fflush(stderr);
    }
}
