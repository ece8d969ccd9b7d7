/**
 * @file
 * A core for every rank where masks that are not the same share cores.
 */
#ifndef FSDPI_TOPOLOGY_PLAN_SEATS_H
#define FSDPI_TOPOLOGY_PLAN_SEATS_H

#include "lib/topology/plan.h"

typedef struct fsdpi_seats {
    const fsdpi_planning *plan;
    size_t                n_groups;
    int                  *groups; /* the first rank of each mask, those with the fewest hardware threads first */
    int                  *owners; /* of each core: the first rank of the mask that it is kept for; -1: none */
    bool                 *tried;  /* of each core */
    fsdp_mask             shared; /* hardware threads that several masks have */
} fsdpi_seats;

/** Keeps a core for as many ranks as can be. False: no memory. */
bool fsdpi_seats_open(const fsdpi_planning *plan, fsdpi_seats *seats);

void fsdpi_seats_close(fsdpi_seats *seats);

/**
 * What of a mask is for its ranks alone: not `taken`, and kept for no other mask's.
 * @return false: less than a core for each
 */
bool fsdpi_seats_left(const fsdpi_seats *seats, int group, const fsdp_mask *taken, fsdp_mask *left);

#endif
