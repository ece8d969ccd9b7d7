/**
 * @file
 * Which nodes an attempt gets, once they have answered.
 */
#ifndef RUN_CHOOSE_H
#define RUN_CHOOSE_H

#include "tools/run/state.h"

/** Asks nodes, ending what is left of attempts there. @param[out] statuses  of each */
void run_state_ask(const run_state *s, run_node *const *nodes, size_t n, const char *file, int *statuses);

/** Sets chosen, ranks and their numbers. 0, with *too_few saying whether there are too few nodes; or fsdp-run's exit status. */
int run_state_choose(run_state *s, bool *too_few);

#endif
