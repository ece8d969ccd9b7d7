/**
 * @file
 * A node and its ranks in one line.
 */
#ifndef TOPO_VERDICT_H
#define TOPO_VERDICT_H

#include "tools/topo/report/report.h"

#define TOPO_VERDICT_BYTES 512

/** "8 ranks, each with its own local GPU, 14 cores, no problems"; of ranks that run, how many are not as planned. */
void topo_verdict(const topo_report *report, char *text, size_t size);

#endif
