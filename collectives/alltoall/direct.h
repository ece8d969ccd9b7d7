/**
 * @file
 * All-to-all by direct exchange: every block goes straight to its final place. In place, the blocks are sent from a copy.
 *
 * Steps: 1. Cost for N blocks of B bytes: alpha + (N-1) B beta per rank; in place N B more of memory and twice that of
 * memory traffic.
 */
#ifndef FSDPI_ALLTOALL_DIRECT_H
#define FSDPI_ALLTOALL_DIRECT_H

#include "lib/queue.h"

extern const fsdpi_algorithm fsdpi_alltoall_direct;

#endif
