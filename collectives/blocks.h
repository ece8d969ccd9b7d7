/**
 * @file
 * Collectives through slots of shared memory: every rank publishes a block of its data beside its letter, and each then
 * takes what it needs from all of them. Any memory, any nodes. Short data is one block, which rides on the agreement
 * (`inline`); longer data is a series of them (`staged`).
 *
 * Across nodes the leaders exchange what the others need of their node: the node's partial reduction, or its data.
 *
 * Cost on one node, per block of B bytes: one synchronisation, B copied in, and (L+1) B / L or 2 B taken out. The memory
 * traffic stays in the cache where a slot does. Across nodes besides: ceil(log2 M) messages, (M-1) B.
 */
#ifndef FSDPI_BLOCKS_H
#define FSDPI_BLOCKS_H

#include "lib/mailbox.h"
#include "lib/queue.h"

/** BYTES of a block of a series on the host, at most: two of each rank stay in a cache of their own. */
enum { FSDPI_BLOCK_BYTES = 512 << 10 };

/** Who publishes what, and who takes it. */
typedef enum fsdpi_pattern {
    FSDPI_GATHER,    /* each its own part; all take all parts */
    FSDPI_SCATTER,   /* each the whole; each takes the reduction of its own part */
    FSDPI_COMBINE,   /* each the whole; each takes the reduction of the whole */
    FSDPI_TO_ROOT,   /* each the whole; the root takes its reduction */
    FSDPI_FROM_ROOT, /* the root the whole; all take it */
    FSDPI_TRANSPOSE  /* each the whole; each takes its own part of every rank's. One node only. */
} fsdpi_pattern;

/** Whether all of a vector of so many BYTES fits into the block that rides on the agreement. */
bool fsdpi_fits_inline(const fsdp_context *ctx, fsdpi_pattern pattern, size_t bytes);

/** For fsdpi_collective::offer: publishes the whole as one block. Returns FSDPI_FLAG_OFFERED. */
unsigned fsdpi_publish_inline(fsdp_request *request, fsdpi_pattern pattern, fsdpi_letter *letter);

/** For fsdpi_collective::record: of that block, what other nodes need. */
size_t fsdpi_record_inline(fsdp_request *request, fsdpi_pattern pattern, unsigned char *payload);

/** Takes that block. */
extern const fsdpi_algorithm fsdpi_inline;

/** Goes through as many blocks as it takes. An allreduce over more than a few ranks scatters the reduction
 *  first, and then gathers it; on the hosts of one node it has a better way, see collectives/allreduce/staged.c. */
extern const fsdpi_algorithm fsdpi_staged;

/** The same on GPUs: copies and reductions go into the operation's stream, slots lie in device memory where peers reach it,
 *  and the host waits for the stream only where they do not, and before data goes to other nodes. */
extern const fsdpi_algorithm fsdpi_staged_device;

#endif
