/**
 * @file
 * The parts of the planner: who gets which GPU, which cores, and what is wrong with a place.
 */
#ifndef FSDPI_TOPOLOGY_PLAN_H
#define FSDPI_TOPOLOGY_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "fsdp/topology.h"

/** What the parts work on. Arrays of `n`, unless they say otherwise. */
typedef struct fsdpi_planning {
    const fsdp_node       *node;
    const fsdp_local_rank *ranks;
    size_t                 n;
    fsdp_place            *places;
    fsdp_mask             *masks;    /* of each rank, within the machine */
    fsdp_mask             *regions;  /* of its mask, what it is to be on, or to divide with others */
    int                   *sharers;  /* how many ranks have the mask of this one, itself included */
    int                   *first;    /* the first of these */
    bool                  *may_use;  /* n x n_gpus */
    int                   *position; /* n_gpus: of each GPU in the order of the cores that it is next to */
} fsdpi_planning;

/** How far a rank's mask is from a GPU; less is nearer. */
typedef enum fsdpi_distance {
    FSDPI_NEAREST, /* under the same cache, or whatever the GPU is attached to */
    FSDPI_SAME_NUMA,
    FSDPI_DISTANCE_UNKNOWN,
    FSDPI_SAME_PACKAGE,
    FSDPI_FAR,
} fsdpi_distance;

fsdpi_distance fsdpi_distance_to(const fsdp_node *node, const fsdp_mask *mask, const fsdp_gpu *gpu);

/** The hardware threads of a GPU's NUMA node; none where that is not known. */
fsdp_mask fsdpi_numa_threads(const fsdp_node *node, const fsdp_gpu *gpu);

/** Gives each rank a GPU: places[].gpu. False: no memory. */
bool fsdpi_plan_gpus(const fsdpi_planning *plan);

/** Divides the cores: places[].threads, and why. */
bool fsdpi_plan_cores(const fsdpi_planning *plan);

/** How many of a node's cores a mask has at least one hardware thread of. */
size_t fsdpi_count_cores(const fsdp_node *node, const fsdp_mask *threads);

/** Finds memory, network card and spare core of each place whose GPU and cores are known. */
void fsdpi_plan_rest(const fsdpi_planning *plan);

/** Sets places[].deviations from GPU and cores: of a plan, or of what is. */
void fsdpi_plan_check(const fsdpi_planning *plan);

/** Says why each rank has the GPU that it has. */
void fsdpi_plan_tell_gpus(const fsdpi_planning *plan);

/**
 * Assigns each of `n` ranks to one of `n_gpus` GPUs so that loads are as even as can be, and of all such assignments the
 * sum of costs is the least. Ranks come one after the other, each along the cheapest path of moves of those before it.
 *
 * @param[in]  costs     n x n_gpus, at most FSDPI_MOST_COST each; negative: this rank may not have this GPU
 * @param[out] assigned  GPU of each rank; -1 where it may have none
 * @return false: no memory
 */
bool fsdpi_assign(const int64_t *costs, size_t n, size_t n_gpus, int *assigned);
#define FSDPI_MOST_COST (INT64_C(1) << 48)

#endif
