/**
 * @file
 * Nodes to plan on: the project's own, in this folder, and ranks for them.
 */
#ifndef FSDP_TESTS_TOPOLOGY_NODES_H
#define FSDP_TESTS_TOPOLOGY_NODES_H

#include <stdbool.h>
#include <stddef.h>

#include "fsdp/topology.h"

enum { MOST_RANKS = 24 };

/** The folder of the file that says FSDP_TEST_NODES, and one of its files; valid until the next call. */
const char *node_file(const char *name);

/** Reads one of them; fails the test if that cannot be. */
fsdp_topology *open_node(const char *name);

/** A mask from text; fails the test if it is none. */
fsdp_mask mask_of(const char *text);

/** Whether a mask is the one that the text says; prints both if not. */
bool mask_is(const fsdp_mask *mask, const char *text);

/** `n` ranks that may use all of a node, or, under `masks`, text for each; which GPUs they see is not known. */
void make_ranks(const fsdp_node *node, const char *const *masks, size_t n, fsdp_local_rank *ranks);

/** Makes a rank see one GPU only. */
void show_gpu(const fsdp_node *node, fsdp_local_rank *rank, int gpu);

/** As "4 5 2 3"; valid until the next call. */
const char *gpus_of(const fsdp_place *places, size_t n);

/** Writes here.xml.in with this host's name into a file of its own, whose name it returns; fails the test if it cannot. */
const char *record_here(void);

#endif
