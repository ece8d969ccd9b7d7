/**
 * @file
 * A plan as command lines, one per launcher: the wrapper gives each rank of a node its cores and its GPU by its local rank, so
 * that the same lines work for any number of like nodes, and with any MPI.
 */
#ifndef TOPO_LAUNCH_H
#define TOPO_LAUNCH_H

#include <stdio.h>

#include "tools/topo/report/report.h"

/** The lines for `nodes` nodes; with the script before them, unless `wrapper` names the file that holds it. */
void topo_launch_write(FILE *file, const topo_report *report, int nodes, const char *wrapper);

#endif
