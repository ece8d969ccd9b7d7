/**
 * @file
 * The parts of the drawing of a node.
 */
#ifndef TOPO_SVG_DRAW_H
#define TOPO_SVG_DRAW_H

#include <stdio.h>

#include "report.h"
#include "svg_layout.h"

/** What the parts are drawn from. */
typedef struct svg_canvas {
    FILE              *file;
    const topo_report *report;
    const svg_layout  *layout;
} svg_canvas;

/** Text with what XML wants escaped. `style` holds attributes. */
void svg_text(FILE *file, double x, double y, const char *style, const char *text);

void svg_rect(FILE *file, svg_box box, const char *style);

/** Packages, NUMA nodes, caches, and cores in the colours of their ranks. */
void svg_draw_cores(const svg_canvas *canvas);

/** GPUs with their ranks, network cards, links, and who is far from its GPU. */
void svg_draw_devices(const svg_canvas *canvas);

/** What the lines and colours mean. @return the bottom */
double svg_draw_legend(const svg_canvas *canvas, double y);

/** The width that its longest line may need. */
double svg_legend_width(const svg_canvas *canvas);

#endif
