/**
 * @file
 * Memory of the peers on a node that is not symmetric, read in one copy by process_vm_readv() (Cross Memory Attach).
 */
#ifndef FSDPI_PEERS_H
#define FSDPI_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/core.h"
#include "lib/device/mapped.h"
#include "lib/node/nodes.h"

typedef struct fsdpi_peers {
    fsdpi_core        *core;
    const fsdpi_nodes *nodes;
    long              *pids;     /* of the peers */
    bool               readable; /* process_vm_readv() works between the ranks of every node */
    fsdpi_pages        open;     /* pages of this rank that it reads */
} fsdpi_peers;

/** Local. */
fsdp_status fsdpi_peers_open(fsdpi_peers *peers, fsdpi_core *core, const fsdpi_nodes *nodes);
void        fsdpi_peers_close(fsdpi_peers *peers);
size_t      fsdpi_peers_bookkeeping(int size);

/** Finds out whether it is permitted: each rank tries it on each peer. Collective, blocking; ranks agree on the answer. */
fsdp_status fsdpi_peers_probe(fsdpi_peers *peers);

/**
 * Whether process_vm_readv() reads the first and the last of these BYTES of this rank, and so for its peers. Of memory that
 * a driver has mapped, or that is secret, the system lets nobody else read. Local; to be asked before peers are told of it.
 */
bool fsdpi_peers_may_read(fsdpi_peers *peers, const void *memory, size_t bytes);

/** Copies from a peer's address. FSDP_ERR_MPI, with the context broken, where the peer's memory is not there. */
fsdp_status fsdpi_peer_read(const fsdpi_peers *peers, int position, uint64_t address, void *to, size_t bytes);

#endif
