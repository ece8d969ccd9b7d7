/**
 * @file
 * A run: attempts, one after the other, until it is over.
 */
#ifndef RUN_SESSION_H
#define RUN_SESSION_H

#include "tools/run/command.h"

typedef struct run_options {
    size_t      max_restarts, spares, min_nodes, ranks_per_node;
    const char *checkpoint, *hostfile, *records, *rsh;
    int         launcher;
    double      grace, patience;
    size_t      job;
    const char *sweep, *look; /* for fsdp-run itself on other hosts */
} run_options;

enum { RUN_USAGE = 2, RUN_FAILED = 3 };

/** Runs the command behind `--`. Returns fsdp-run's exit status; the last line has been printed. */
int run_session(const run_options *options, char **command);

#endif
