#include "example_bar.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "example_clock.h"

#define COLUMNS  30
#define INTERVAL 0.2 /* SECONDS between two drawings */

const char *const example_progress_names[] = {"auto", "on", "off", NULL};

void example_bar_open(example_bar *bar, const fsdp_context *ctx, example_progress progress)
{
    const int wanted = progress == EXAMPLE_PROGRESS_ON || (progress == EXAMPLE_PROGRESS_AUTO && isatty(STDERR_FILENO));

    *bar = (example_bar){.on = fsdp_rank(ctx) == 0 && wanted, .started = example_now()};
}

void example_bar_draw(example_bar *bar, size_t step, size_t steps)
{
    const double now = bar->on ? example_now() : 0;
    unsigned     left;
    char         line[COLUMNS + 1];

    if (!bar->on || now - bar->drawn < INTERVAL) {
        return;
    }
    bar->drawn = now;
    left       = (unsigned)((now - bar->started) / (double)step * (double)(steps - step) + 0.5);
    memset(line, '.', COLUMNS);
    memset(line, '#', COLUMNS * step / steps);
    line[COLUMNS] = '\0';
    (void)fprintf(stderr, "\r[%s] step %zu of %zu, %u:%02u left\033[K", line, step, steps, left / 60, left % 60);
    (void)fflush(stderr);
}

void example_bar_clear(const example_bar *bar)
{
    if (bar->on) {
        (void)fprintf(stderr, "\r\033[K");
        (void)fflush(stderr);
    }
}
