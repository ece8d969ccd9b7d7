/**
 * @file
 * A node and the ranks that run on it: each looks at itself before and after fsdp_init(), and the leader of its node puts them
 * together.
 */
#ifndef TOPO_GATHER_H
#define TOPO_GATHER_H

#include "tools/topo/base/world.h"
#include "tools/topo/report/report.h"

/** Reads every node and gathers its ranks, with fsdp_init() in between. Collective; only leaders have the report. */
fsdp_status topo_report_gather(const topo_world *world, topo_report *report);

#endif
