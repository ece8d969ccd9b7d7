/**
 * @file
 * What the link of a node can do: the bound of every collective across nodes.
 */
#ifndef BENCH_LINK_H
#define BENCH_LINK_H

#include "bench/base/world.h"

/**
 * BYTES per second that each node can send while it receives as much: every rank streams to its counterpart on the next
 * node and hears from the one before. Collective. 0 with one node.
 */
double bench_link_measure(const bench_world *world);

#endif
