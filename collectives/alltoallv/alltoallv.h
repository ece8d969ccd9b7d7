/** @file The steps of alltoallv, and what ranks tell each other of their counts. */
#ifndef FSDPI_ALLTOALLV_H
#define FSDPI_ALLTOALLV_H

#include "lib/progress/queue.h"

extern const fsdpi_algorithm fsdpi_alltoallv_pairwise; /* pairwise.c */

/** For fsdpi_collective::prepare: room for what ranks tell each other and, in place, for a copy of the input. */
fsdp_status fsdpi_alltoallv_prepare(fsdp_request *request);

#endif
