/**
 * @file
 * What a collective costs across nodes, by each algorithm, as a function of the bytes, the nodes, the ranks on each, and what the
 * link was measured to do. The table of algorithms follows from it where several nodes are. Pure functions: a world may be made up.
 */
#ifndef FSDPI_COSTS_H
#define FSDPI_COSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "fsdp/algorithms.h"
#include "lib/context/collective_id.h"
#include "lib/sync/link.h"

/** Nodes, as costs see them. */
typedef struct fsdpi_world {
    int    nodes;         /* M */
    int    each;          /* L: ranks on the largest */
    size_t staging_bytes; /* config.staging_bytes */
} fsdpi_world;

/** All in SECONDS, beta and gamma for a BYTE. */
typedef struct fsdpi_costs {
    double alpha_s;      /* a synchronisation of the node */
    double alpha_m;      /* a short message, from one node to another */
    double alpha_r;      /* and where all ranks of a node wait for one each */
    double gap;          /* each further one that is sent with it */
    double beta;         /* over the link of a node */
    double gamma;        /* of memory traffic, mostly in caches */
    size_t whole;        /* BYTES of an allreduce of which two ranks send each other everything: fsdpi_link_whole() */
    size_t whole_cached; /* the same of what caches hold */
    bool   pulls;        /* as in fsdpi_link */
    size_t together;     /* BYTES that ride behind a head: fsdpi_link_together() */
} fsdpi_costs;

/** What follows from a link, for a world; what was not measured, is 0 there, is assumed. */
fsdpi_costs fsdpi_costs_of(const fsdpi_link *link, const fsdpi_world *world);

/** The costs of an allreduce between two ranks of what caches hold. */
fsdpi_costs fsdpi_costs_of_cached(const fsdpi_costs *costs);

/** Whether agreements are exchanged in pairs (lib/sync/pairs.h), which costs less than rounds do where nodes are few. */
bool fsdpi_costs_in_pairs(const fsdpi_costs *costs, const fsdpi_world *world);

/** BYTES of the full vector up to which `inline` can carry a collective, of equal parts. */
size_t fsdpi_costs_most_inline(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective);

/** SECONDS of a collective of a full vector of so many BYTES; INFINITY where the algorithm has no way to do it. */
double fsdpi_cost(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective,
                  fsdp_algorithm algorithm, size_t bytes);

/** The algorithm that costs least, of some: a bit each. FSDP_ALGO_STAGED if none of these can do it. */
fsdp_algorithm fsdpi_costs_cheapest(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective,
                                    unsigned of, size_t bytes);

/** BYTES up to which, from `bytes` on, the cheapest stays the same; SIZE_MAX: however many. */
size_t fsdpi_costs_same_until(const fsdpi_costs *costs, const fsdpi_world *world, fsdpi_collective_id collective,
                              unsigned of, size_t bytes);

#endif
