/**
 * @file
 * Memory of the peers on a node that is not symmetric, read in one copy by process_vm_readv() (Cross Memory Attach).
 */
#ifndef FSDPI_PEERS_H
#define FSDPI_PEERS_H

#include <stddef.h>
#include <stdint.h>

#include "fsdp/context.h"

/** Finds out whether it is permitted: each rank tries it on each peer. Collective, blocking; ranks agree on the answer. */
fsdp_status fsdpi_peers_probe(fsdp_context *ctx);

/** Copies from a peer's address. FSDP_ERR_MPI, with the context broken, where the peer's memory is not there. */
fsdp_status fsdpi_peer_read(fsdp_context *ctx, int position, uint64_t address, void *to, size_t bytes);

#endif
