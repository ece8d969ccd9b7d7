/**
 * @file
 * Why ranks are where they are: once for all that have the same reasons, or rank by rank.
 */
#ifndef TOPO_REASONS_H
#define TOPO_REASONS_H

#include <stdio.h>

#include "tools/topo/report/report.h"

/** The reasons of the plan; of each rank on its own if `all`. */
void topo_reasons_write(FILE *file, const topo_report *report, int all);

/** What fsdp_init() has said, likewise. */
void topo_bindings_write(FILE *file, const topo_report *report, int all);

#endif
