/**
 * @file
 * All that a run knows; and how it begins.
 */
#ifndef RUN_STATE_H
#define RUN_STATE_H

#include <limits.h>

#include "tools/run/ask.h"
#include "tools/run/command.h"
#include "tools/run/decide.h"
#include "tools/run/fence.h"
#include "tools/run/options.h"

typedef struct run_state {
    const run_options *o;
    run_command        command;
    run_nodes          nodes;
    run_reach          reach;
    run_fence          fence;
    char               id[40];
    char               records[PATH_MAX]; /* the folder of all attempts' */
    run_node         **chosen;            /* of the attempt under way */
    size_t            *ranks;             /* of each */
    size_t             n, sum;
    size_t             wanted;     /* nodes of the first attempt */
    size_t             sum_before; /* ranks of the attempt before; 0: none */
    unsigned           attempt;
    int                signals;
    run_end            ends[2]; /* of the last attempt, and the one before */
    size_t             n_ends;
} run_state;

/** Reads the command, finds nodes, folder and place for records, and takes the signals. 0; or fsdp-run's exit status. */
int run_state_open(run_state *s, char **command);

void run_state_close(run_state *s);

#endif
