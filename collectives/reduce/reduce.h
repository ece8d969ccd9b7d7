/** @file The algorithm of reduce that reduce_scatter has not, and the file that it is in. */
#ifndef FSDPI_REDUCE_H
#define FSDPI_REDUCE_H

#include "lib/progress/queue.h"

/** For fsdpi_collective::prepare: on other ranks than the root, the memory that rails reduces this rank's part in. */
fsdp_status fsdpi_reduce_prepare(fsdp_request *request);

extern const fsdpi_algorithm fsdpi_reduce_rails; /* rails.c */

#endif
