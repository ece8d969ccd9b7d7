/**
 * @file
 * Every collective by every algorithm, with its messages counted and held against tests/collectives/traffic.h.
 */
#ifndef FSDP_TESTS_COUNTED_H
#define FSDP_TESTS_COUNTED_H

/** Fails the test where a rank sends or receives anything but what the formulas say. `node_size`: as FSDP_NODE_SIZE. */
void count_on_nodes_of(int node_size);

#endif
