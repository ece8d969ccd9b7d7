/**
 * @file
 * What is known of one node and of the ranks on it: what every way of showing them begins with.
 */
#ifndef TOPO_REPORT_H
#define TOPO_REPORT_H

#include <stddef.h>

#include <fsdp/fsdp.h>

#include "tools/topo/base/load.h"

#define TOPO_BINDING_BYTES 320

/** What a rank says of itself. */
typedef struct topo_rank {
    fsdp_local_rank before; /* what the launcher left to it */
    fsdp_local_rank after;  /* once fsdp_init() has bound it */
    char            binding[TOPO_BINDING_BYTES];
} topo_rank;

/** A node, as the rank that leads it sees it. */
typedef struct topo_report {
    fsdp_topology   *topology;
    const fsdp_node *node;
    char             host[64];
    size_t           n;     /* ranks; 0: none run, and none are planned */
    topo_rank       *ranks; /* `binding` and `after` are empty where nothing runs */
    fsdp_place      *plan;  /* n; from `before` */
    fsdp_place      *real;  /* n; from `after`; NULL: nothing runs */
    fsdp_place *freed; /* n; the plan if each rank could use all that the ranks have together; NULL: nothing runs */
    topo_load  *load;  /* NULL: not watched */
} topo_report;

void topo_report_release(topo_report *report);

/** Opens the node, and takes down its name. Local. The library has printed what is wrong. */
fsdp_status topo_report_open(const char *file, topo_report *report);

/** Makes room for the ranks and their places. Local. */
fsdp_status topo_report_allocate(topo_report *report, size_t n, int runs);

/** Plans `ranks`, each by its `before` or its `after`, with `planner`; or with `threads`, if that is not NULL. Local. */
fsdp_status topo_report_place(const topo_report *report, int after, const fsdp_mask *threads,
                              fsdp_status (*planner)(const fsdp_node *, const fsdp_local_rank *, size_t, fsdp_place *),
                              fsdp_place *places);

/** All hardware threads that the launcher left to some rank. */
fsdp_mask topo_report_threads(const topo_report *report);

/** The places to show first: what is, or else what is planned. */
static inline const fsdp_place *topo_report_shown(const topo_report *report)
{
    return report->real ? report->real : report->plan;
}

/** Whether the plan puts a rank elsewhere than where it is; which GPU a rank uses may not be known, and then is not compared. */
int topo_report_differs(const topo_report *report, size_t rank);

/** How many cores a mask has hardware threads of. */
size_t topo_count_cores(const fsdp_node *node, const fsdp_mask *threads);

/** How many marks all places have. */
size_t topo_count_deviations(const fsdp_place *places, size_t n);

#endif
