/**
 * @file
 * What the parts of a drawing are drawn from, and with.
 */
#ifndef TOPO_SVG_DRAW_H
#define TOPO_SVG_DRAW_H

#include <stdio.h>

#include "tools/topo/report/report.h"
#include "tools/topo/svg/layout.h"

typedef struct svg_canvas {
    FILE              *file;
    const topo_report *report;
    const svg_layout  *layout;
} svg_canvas;

/** Text with what XML wants escaped. `style` holds attributes. */
void svg_text(FILE *file, double x, double y, const char *style, const char *text);

void svg_rect(FILE *file, svg_box box, const char *style);

#endif
