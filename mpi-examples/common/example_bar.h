/**
 * @file
 * A progress bar on standard error, which rank 0 draws where a person is looking. All functions are local.
 */
#ifndef EXAMPLE_BAR_H
#define EXAMPLE_BAR_H

#include <stddef.h>

#include <fsdp/fsdp.h>

/** What an option --progress says; AUTO is on where standard error is a terminal. */
typedef enum example_progress { EXAMPLE_PROGRESS_AUTO, EXAMPLE_PROGRESS_ON, EXAMPLE_PROGRESS_OFF } example_progress;

/** Their names, as choices of an option. */
extern const char *const example_progress_names[];

typedef struct example_bar {
    int    on; /* on this rank */
    double started, drawn;
} example_bar;

/** Opens a bar that is empty now. */
void example_bar_open(example_bar *bar, const fsdp_context *ctx, example_progress progress);

/** Redraws it after `step` of `steps`, if it is time. */
void example_bar_draw(example_bar *bar, size_t step, size_t steps);

/** Removes it, so that a line can be printed. */
void example_bar_clear(const example_bar *bar);

#endif
