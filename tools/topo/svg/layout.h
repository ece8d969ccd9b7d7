/**
 * @file
 * Where things are in the drawing: packages side by side, in each its NUMA nodes, in each its caches with their cores, below
 * them the network cards, and the GPUs in one row that goes through all of them, so that links can be drawn beneath. What is too
 * wide is drawn in several such rows, one under the other; a package that is in two of them has a box in each.
 */
#ifndef TOPO_SVG_LAYOUT_H
#define TOPO_SVG_LAYOUT_H

#include <stddef.h>

#include <fsdp/fsdp.h>

/* Units are pixels. */
#define SVG_GAP      8
#define SVG_TITLE    18
#define SVG_CELL_W   30 /* a core */
#define SVG_STRIP_H  14 /* a hardware thread of it */
#define SVG_DEVICE_W 104
#define SVG_GPU_H    76
#define SVG_NIC_H    20
#define SVG_MOST_W   1600 /* of a row of several NUMA nodes */

typedef struct svg_box {
    double x, y, w, h;
} svg_box;

/** Cores of one NUMA node that share a last-level cache. */
typedef struct svg_cluster {
    int     cache;    /* index; -1: none */
    size_t  first, n; /* in svg_layout::order */
    svg_box box;
} svg_cluster;

/** A NUMA node within a package; or what of a package is on none, or the node's devices without locality. */
typedef struct svg_group {
    int     package, numa; /* indices; -1: none */
    size_t  first, n;      /* in svg_layout::clusters */
    size_t  gpus, nics;
    size_t  row;
    double  bottom; /* of caches and network cards, above the GPUs */
    svg_box box;
} svg_group;

/** Groups of one package in one row. */
typedef struct svg_package {
    int     package;
    size_t  row;
    size_t  first, n; /* in svg_layout::groups */
    svg_box box;
} svg_package;

typedef struct svg_layout {
    const fsdp_node *node;
    size_t          *order; /* the cores' indices, as they are drawn */
    svg_box         *cores; /* by index */
    svg_box         *gpus;  /* by index */
    svg_box         *nics;  /* by index */
    size_t           n_clusters, n_groups, n_packages;
    svg_cluster     *clusters;
    svg_group       *groups;
    svg_package     *packages;
    int              strips; /* hardware threads of the core that has most */
    double           width, height;
    double           links_bottom; /* of the arcs; `height` is at least that */
} svg_layout;

/** Local. @return 0: out of memory */
int svg_layout_make(const fsdp_node *node, svg_layout *layout);

void svg_layout_release(svg_layout *layout);

/** How deep the arc of a link between two places hangs. */
double svg_arc_depth(double x1, double x2);

#endif
