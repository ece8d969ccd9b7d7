/**
 * @file
 * What the memory of a node can do, measured in the same run: the bound of every collective inside a node.
 */
#ifndef BENCH_BANDWIDTH_H
#define BENCH_BANDWIDTH_H

#include "bench/base/world.h"

typedef struct bench_bandwidth {
    double      copy, triad; /* BYTES per second of one node, with all ranks at work, counted as STREAM counts them */
    double      best;        /* of these two: what bounds are taken from */
    double      pages;       /* of a copy that walks several pages at once */
    size_t      cache_bytes; /* last-level cache of this machine */
    size_t      array_bytes; /* of each of three arrays, over the ranks of this machine */
    const char *stores;      /* with which `best` was reached */
} bench_bandwidth;

/** Collective. */
fsdp_status bench_bandwidth_measure(const bench_world *world, bench_bandwidth *bandwidth);

#endif
