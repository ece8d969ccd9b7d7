/**
 * @file
 * The algorithm `staged`: data goes through slots of shared memory in a series of blocks. Every rank publishes a block of its
 * data beside its letter, and each then takes what it needs from all of them. Any memory, any nodes, any collective.
 *
 * An allreduce over more than a few ranks scatters the reduction first, and then gathers it; on the hosts of one node it has a
 * better way, see collectives/allreduce/staged.c. Across nodes the leaders exchange what the others need of their node.
 *
 * Cost on one node, per block of B bytes: one synchronisation, B copied in, and (L+1) B / L or 2 B taken out. The memory
 * traffic stays in the cache where a slot does. Across nodes besides: ceil(log2 M) messages, (M-1) B.
 */
#ifndef FSDPI_STAGED_H
#define FSDPI_STAGED_H

#include "collectives/blocks/pattern.h"
#include "lib/progress/queue.h"

extern const fsdpi_algorithm fsdpi_staged;
extern const fsdpi_algorithm fsdpi_staged_device; /* the same on GPUs */

/** One step of a series of blocks of a pattern, from request->at on. */
fsdp_status fsdpi_blocks_advance(fsdp_request *request, fsdpi_pattern pattern, fsdpi_progress *progress);

/** The second half of an allreduce: what was reduced here is gathered from here, by blocks. */
void fsdpi_begin_gathering(fsdp_request *request);

/** For fsdpi_algorithm::advance and fsdpi_algorithm::end, wherever the data is. */
fsdp_status fsdpi_staged_advance(fsdp_request *request, fsdpi_progress *progress);
void        fsdpi_staged_end(fsdp_request *request);

#endif
