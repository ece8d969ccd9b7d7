/**
 * @file
 * A node and its ranks as a drawing.
 */
#ifndef TOPO_SVG_H
#define TOPO_SVG_H

#include <stdio.h>

#include "tools/topo/report/collect.h"

/** A topo_writer: width and height on a line of their own, then the drawing. */
void topo_svg_write(FILE *file, const topo_report *report, size_t index);

/** The document that holds the drawings of all nodes, one under the other. */
void topo_svg_document(FILE *file, const topo_texts *nodes);

#endif
