/** @file The algorithms of alltoallv. */
#ifndef FSDPI_ALLTOALLV_H
#define FSDPI_ALLTOALLV_H

#include "lib/progress/queue.h"
#include "lib/sync/mailbox.h"
#include "lib/sync/pairs.h"

extern const fsdpi_algorithm fsdpi_alltoallv_pairwise; /* pairwise.c */

/* inline.c: */

/** Whether this rank's blocks can ride on the agreement, and are so short that they should. */
bool fsdpi_alltoallv_may_ride(const fsdp_request *request);

/** For fsdpi_collective::offer: copies them to where peers on the node find them, or into what is sent to other nodes. */
void fsdpi_alltoallv_publish(fsdp_request *request, fsdpi_letter *letter);

/** For fsdpi_collective::record and portion: what the ranks of this node have for all other nodes, and the part for one. */
size_t        fsdpi_alltoallv_record(fsdp_request *request, unsigned char *payload);
fsdpi_portion fsdpi_alltoallv_portion(fsdp_request *request, int node);

/** For fsdpi_collective::choose, where all ride: with an agreement at the end only if there are counts that differ. */
const fsdpi_algorithm *fsdpi_alltoallv_inline(fsdp_request *request);

#endif
