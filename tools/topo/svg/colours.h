/**
 * @file
 * Colours of ranks and of links.
 */
#ifndef TOPO_SVG_COLOURS_H
#define TOPO_SVG_COLOURS_H

#include <stddef.h>

#include <fsdp/fsdp.h>

typedef struct svg_colour {
    char text[8]; /* "#7fb3e6" */
} svg_colour;

/** Light enough for black text on it; neighbours differ. */
svg_colour svg_rank_colour(size_t rank);

/** Of the frame of a core, by the index of its kind. */
const char *svg_kind_colour(int kind);

const char *svg_link_colour(fsdp_link_type type);

#endif
