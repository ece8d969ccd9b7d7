/**
 * @file
 * Nodes at work, again and again.
 */
#ifndef TOPO_WATCH_H
#define TOPO_WATCH_H

#include "tools/topo/base/options.h"
#include "tools/topo/base/world.h"
#include "tools/topo/report/report.h"

/** Collective over all ranks of `world`; leaders bring the report of their node. Ends at SIGINT or SIGTERM. */
fsdp_status topo_watch(const topo_world *world, const topo_options *options, topo_report *report);

#endif
