/**
 * @file
 * What the memory of a node can do, measured in the same run: the bound of every collective inside a node.
 */
#ifndef BENCH_BANDWIDTH_H
#define BENCH_BANDWIDTH_H

#include "bench/base/world.h"

/** What it is measured with. */
typedef struct bench_arrays bench_arrays;

typedef struct bench_bandwidth {
    double      copy, triad; /* BYTES per second of one node, with all ranks at work, counted as STREAM counts them */
    double      best;        /* of these two: what bounds are taken from */
    double      pages;       /* of a copy that walks several pages at once */
    size_t      cache_bytes; /* last-level cache of this machine */
    size_t      array_bytes; /* of each of three arrays, over the ranks of this machine */
    const char *stores;      /* with which `best` was reached */

    bench_arrays *arrays; /* NULL: not measured, or closed */
} bench_bandwidth;

/** Collective. bench_bandwidth_close() follows, whatever is returned. */
fsdp_status bench_bandwidth_measure(const bench_world *world, bench_bandwidth *bandwidth);

/**
 * Measures it again, in some milliseconds and in the way that gave `best`, on a part of the arrays that no cache has any
 * more. Collective. @return BYTES per second of one node
 */
double bench_bandwidth_again(const bench_world *world, const bench_bandwidth *bandwidth);

/** Releases the arrays. Local; twice is fine. */
void bench_bandwidth_close(bench_bandwidth *bandwidth);

#endif
