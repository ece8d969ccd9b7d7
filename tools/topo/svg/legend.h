/**
 * @file
 * What the lines and colours mean: lines of links, kinds of cores and of memory, then a line per rank.
 */
#ifndef TOPO_SVG_LEGEND_H
#define TOPO_SVG_LEGEND_H

#include "tools/topo/svg/draw.h"

/** @return the bottom */
double svg_draw_legend(const svg_canvas *canvas, double y);

/** The width that its longest line may need. */
double svg_legend_width(const svg_canvas *canvas);

#endif
