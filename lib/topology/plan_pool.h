/**
 * @file
 * Ranks with one mask, and the cores that they divide: first each gets a NUMA node (plan_homes.c), or whole ones
 * (plan_regions.c), then those of a NUMA node divide its cores (plan_divide.c).
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
    int                  *alike;   /* of each member: the first one that wants the same NUMA nodes */
    size_t               *room;    /* of each NUMA node: cores */
    size_t               *users;   /* of each NUMA node: members */
    size_t               *cores;   /* room for as many numbers as the node has cores */
    size_t               *starts;  /* likewise, and one more */
    size_t               *counts;  /* likewise */
    size_t               *parts;   /* room for a number per member */
} fsdpi_pool;

/** Memory for pools of up to all ranks. False: none. */
bool fsdpi_pool_open(const fsdpi_planning *plan, fsdpi_pool *pool);

void fsdpi_pool_close(fsdpi_pool *pool);

/** How good a NUMA node is for a rank. */
enum { FSDPI_WANTED, FSDPI_IN_PACKAGE, FSDPI_ELSEWHERE, FSDPI_N_LEVELS };

/** The NUMA node of a core; those of none, or of several, count as one more. */
size_t fsdpi_pool_numa(const fsdp_node *node, size_t core);

/** The package of such a NUMA node; -1: unknown. */
int fsdpi_pool_package(const fsdp_node *node, size_t numa);

/** Sets room[], and users[] to 0. */
void fsdpi_pool_count_room(fsdpi_pool *pool);

/** How good a NUMA node is for a rank. */
int fsdpi_pool_level(const fsdpi_pool *pool, size_t rank, size_t numa);

/** The same of the best one that has any core. */
int fsdpi_pool_best_level(const fsdpi_pool *pool, size_t rank);

/** Sets regions[] from homes[]. */
void fsdpi_pool_find_regions(fsdpi_pool *pool);

/** Sets regions[] of each member: of `free`, what it has or divides with those of the same region. */
void fsdpi_pool_settle(fsdpi_pool *pool);

/** Divides each region: threads and reasons of the places. */
void fsdpi_pool_divide(fsdpi_pool *pool);

#endif
