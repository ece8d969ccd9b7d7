/**
 * @file
 * The exchange of short records between the leaders of the nodes: an allgather in ceil(log2 M) messages per leader
 * (Bruck et al., "Efficient Algorithms for All-to-All Communications in Multiport Message-Passing Systems", 1997).
 *
 * Records lie in the leader's staging memory, where its node reads them: this node's first, then those of the nodes after
 * it, around. Each says how long it is.
 */
#ifndef FSDPI_EXCHANGE_H
#define FSDPI_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/step.h"
#include "lib/node/nodes.h"
#include "lib/sync/mailbox.h"
#include "lib/sync/messages.h"

typedef struct fsdpi_record {
    uint64_t call, fingerprint;
    uint32_t flags;
    int32_t  status;
    uint64_t bytes; /* of payload behind this */
} fsdpi_record_head;

typedef struct fsdpi_exchange {
    const fsdpi_nodes *nodes;
    fsdpi_mailbox     *box; /* where records lie */
    fsdpi_messages    *messages;
    size_t             have;   /* records that are here */
    size_t             end;    /* BYTES of them */
    bool               posted; /* a round is under way */
} fsdpi_exchange;

/**
 * BYTES of the largest payload of which all nodes' records fit, together in one message of MPI; fsdpi_exchange_fits() has
 * seen that some do.
 */
size_t fsdpi_exchange_capacity(const fsdpi_exchange *exchange);

/** Whether a mailbox is large enough for the records of its nodes. */
bool fsdpi_exchange_fits(size_t rest_bytes, int nodes);

/** This node's record, for the leader to fill in before fsdpi_exchange_advance(); its payload begins right behind. */
fsdpi_record_head *fsdpi_exchange_begin(fsdpi_exchange *exchange);

/**
 * One step of the leader's exchange.
 * @param[in] equal  all records are known to be as long as this node's: they may then be cut into messages
 */
fsdp_status fsdpi_exchange_advance(fsdpi_exchange *exchange, bool equal, fsdpi_progress *progress);

/** The record of a node, for every rank of a leader's node once the leader has said that it is there. */
const fsdpi_record_head *fsdpi_exchange_record(const fsdpi_exchange *exchange, int node);

#endif
