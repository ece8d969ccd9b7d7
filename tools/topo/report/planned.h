/**
 * @file
 * A node and ranks that do not run: what a launcher would leave to each of them comes from the command line.
 */
#ifndef TOPO_PLANNED_H
#define TOPO_PLANNED_H

#include "tools/topo/base/options.h"
#include "tools/topo/base/world.h"
#include "tools/topo/report/report.h"

/** Reads a node and, if `options` ask for ranks, plans them. Local: for one rank only. Released even after a failure. */
fsdp_status topo_report_plan(const topo_world *world, const topo_options *options, topo_report *report);

#endif
