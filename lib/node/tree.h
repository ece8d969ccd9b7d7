/**
 * @file
 * Who hears whom on a node of many ranks, so that nobody has to look at all others: a tree over caches and NUMA nodes.
 *
 * Ranks next to the same cache are a group, those that speak for such groups on a NUMA node are one, and so on up to the
 * whole node; a group that is large is several. In each, the lowest position hears the others and speaks for them in the
 * group above, so that position 0 hears of all.
 */
#ifndef FSDPI_TREE_H
#define FSDPI_TREE_H

#include <stdbool.h>
#include <stdint.h>

/** Up to how many ranks look at each other directly; the largest group, unless a setting says otherwise. */
enum { FSDPI_FEW_ON_NODE = 16 };

/** What a rank is bound to: numbers by which ranks of one node compare. -1: to more than one of them, or not known. */
typedef struct fsdpi_place {
    int32_t cache, numa;
} fsdpi_place;

/** A position in the tree: one of those that it hears is a leaf if it hears nobody itself. */
typedef struct fsdpi_branch {
    int       above;  /* the position that hears this one; -1: none */
    int       n;      /* that this one hears */
    int       n_leaf; /* the first of these: leaves */
    uint16_t *below;  /* them; room for all positions of the node */
} fsdpi_branch;

/**
 * Whether a node of so many ranks has a tree.
 * @param[in] group  FSDP_NODE_GROUP: ranks of a group; 0: as found; 1: none
 */
bool fsdpi_tree_is_needed(int size, int group);

/**
 * The tree of a node, the same from the same places: for each position the one that hears it; 0 for position 0. With groups
 * of a given size, these are of consecutive positions, and places do not matter.
 */
void fsdpi_tree_grow(const fsdpi_place *places, int size, int group, uint16_t *above);

/** What of a tree one position knows. */
void fsdpi_tree_cut(const uint16_t *above, int size, int position, fsdpi_branch *branch);

#endif
