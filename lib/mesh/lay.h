/**
 * @file
 * Which rank is at which place of a mesh. A pure function of the nodes and of the length of a group: every rank knows it of all.
 */
#ifndef FSDPI_LAY_H
#define FSDPI_LAY_H

#include "lib/node/nodes.h"

typedef struct fsdpi_lay {
    const fsdpi_nodes *nodes;
    int                group; /* ranks of a group, which divides all */
    int *groups; /* of each node, and one behind the last: how many groups are whole on the nodes before; */
    int *ranks;  /* and how many ranks are on these */
} fsdpi_lay;

/** How many ints `groups` and `ranks` have together. */
static inline size_t fsdpi_lay_length(const fsdpi_nodes *nodes)
{
    return 2 * ((size_t)nodes->count + 1);
}

/** Fills `groups`, whose memory for fsdpi_lay_length() ints the caller has put there; `ranks` is its second half. Takes time as the number of nodes. */
void fsdpi_lay_fill(fsdpi_lay *lay);

/** Takes constant time where a node is found in constant time: see lib/node/roster.h. */
int fsdpi_lay_place(const fsdpi_lay *lay, int rank);

/** Takes time as the logarithm of the number of nodes. */
int fsdpi_lay_rank(const fsdpi_lay *lay, int place);

/** How many groups have ranks on several nodes. */
static inline int fsdpi_lay_crossing(const fsdpi_lay *lay)
{
    const int nodes = lay->nodes->count;

    return lay->ranks[nodes] / lay->group - lay->groups[nodes];
}

#endif
