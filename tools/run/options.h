/**
 * @file
 * What fsdp-run was asked for.
 */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H

#include <stddef.h>

typedef struct run_options {
    size_t      max_restarts, spares, min_nodes, ranks_per_node;
    const char *checkpoint, *hostfile, *records, *rsh;
    int         launcher;
    double      grace, patience;
    size_t      job;
    const char *sweep, *look; /* for fsdp-run itself on other hosts */
} run_options;

/** Exit statuses before there is a run. */
enum { RUN_USAGE = 2, RUN_FAILED = 3 };

#endif
