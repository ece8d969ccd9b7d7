/**
 * @file
 * Next to which cache and on which NUMA node a process runs, as far as it is bound to one.
 */
#ifndef FSDPI_TOPOLOGY_PLACE_H
#define FSDPI_TOPOLOGY_PLACE_H

#include "fsdp/topology.h"
#include "lib/node/tree.h"

/**
 * The place of who runs on these hardware threads: the last-level cache, by the lowest thread next to it, and the NUMA node
 * that all of them are next to. A look at a few files, where hwloc takes tens of milliseconds.
 * @param[in] root  in front of /sys: "", or where a test has made it up
 */
fsdpi_place fsdpi_place_of(const char *root, const fsdp_mask *threads);

/** Of the calling thread. */
fsdpi_place fsdpi_place_now(void);

#endif
