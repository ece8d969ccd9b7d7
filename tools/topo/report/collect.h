/**
 * @file
 * From the leaders of the nodes to rank 0, which alone prints and writes.
 */
#ifndef TOPO_COLLECT_H
#define TOPO_COLLECT_H

#include <stddef.h>
#include <stdio.h>

#include "tools/topo/base/world.h"
#include "tools/topo/report/report.h"

/** Writes what is to be said of one node. `index` counts the nodes. */
typedef void topo_writer(FILE *file, const topo_report *report, size_t index);

/** One text per node, in the order of their lowest ranks; only rank 0 has them. */
typedef struct topo_texts {
    size_t n;
    char **text; /* each ends with a NUL */
} topo_texts;

/** Collective over all ranks; every leader writes, and rank 0 receives. */
fsdp_status topo_collect(const topo_world *world, const topo_report *report, topo_writer *writer, topo_texts *texts);

void topo_texts_release(topo_texts *texts);

#endif
