/**
 * @file
 * The node that a test has open, and a plan on it.
 */
#ifndef FSDP_TESTS_TOPOLOGY_PLANNED_H
#define FSDP_TESTS_TOPOLOGY_PLANNED_H

#include "tests/lib/topology/nodes.h"

extern const fsdp_node *node;
extern fsdp_local_rank  ranks[MOST_RANKS];
extern fsdp_place       places[MOST_RANKS];

/** Opens a node as open_node() does, and sets `node`. */
void open_on(const char *name);

/** cmocka's teardown of a test. */
int close_node(void **state);

/** Plans for make_ranks(): fills `ranks` and `places`. */
void plan(const char *const *masks, size_t n);

#endif
