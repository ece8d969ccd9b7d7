/**
 * @file
 * The script that a launcher starts instead of a program: it gives each rank of a node its cores and its GPU.
 */
#ifndef TOPO_WRAPPER_H
#define TOPO_WRAPPER_H

#include <stdio.h>

#include "tools/topo/report/report.h"

/** Writes the script that carries out the plan. */
void topo_wrapper_write(FILE *file, const topo_report *report);

/** Whether a rank of the plan has a GPU of this PCI vendor. */
int topo_wrapper_uses(const topo_report *report, int vendor);

#define TOPO_AMD    0x1002
#define TOPO_NVIDIA 0x10de

#endif
