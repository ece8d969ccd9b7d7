/**
 * @file
 * Packages, NUMA nodes, caches, and cores in the colours of their ranks.
 */
#ifndef TOPO_SVG_CORES_H
#define TOPO_SVG_CORES_H

#include "tools/topo/svg/draw.h"

void svg_draw_cores(const svg_canvas *canvas);

#endif
