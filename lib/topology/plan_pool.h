/**
 * @file
 * Ranks with one mask, and the cores that they divide: first each gets a NUMA node, or whole ones (plan_homes.c), then those
 * of a NUMA node divide its cores (plan_divide.c).
 */
#ifndef FSDPI_TOPOLOGY_PLAN_POOL_H
#define FSDPI_TOPOLOGY_PLAN_POOL_H

#include "lib/topology/plan.h"

typedef struct fsdpi_pool {
    const fsdpi_planning *plan;
    fsdp_mask             free;    /* the hardware threads that they divide */
    size_t                n;       /* ranks */
    size_t               *members; /* in the order of the cores that their GPUs are next to, then of ranks */
    int                  *homes;   /* of each member: index of a NUMA node */
    int                  *kinds;   /* of each member: the first one that wants the same NUMA nodes */
    size_t               *room;    /* of each NUMA node: cores */
    size_t               *users;   /* of each NUMA node: members */
    size_t               *cores;   /* room for as many numbers as the node has cores */
    size_t               *starts;  /* likewise, and one more */
    size_t               *counts;  /* likewise */
    size_t               *parts;   /* room for two numbers per member */
} fsdpi_pool;

/** Memory for pools of up to all ranks. False: none. */
bool fsdpi_pool_open(const fsdpi_planning *plan, fsdpi_pool *pool);

void fsdpi_pool_close(fsdpi_pool *pool);

/** Sets regions[] of each member: of `free`, what it has or divides with those of the same region. */
void fsdpi_pool_settle(fsdpi_pool *pool);

/** Divides each region: threads and reasons of the places. */
void fsdpi_pool_divide(fsdpi_pool *pool);

#endif
