/**
 * @file
 * GPUs with their ranks, network cards, links, and who is far from its GPU.
 */
#ifndef TOPO_SVG_DEVICES_H
#define TOPO_SVG_DEVICES_H

#include "tools/topo/svg/draw.h"

void svg_draw_devices(const svg_canvas *canvas);

#endif
