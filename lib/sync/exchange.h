/**
 * @file
 * The exchange of short records between the leaders of the nodes, in ceil(log2 M) messages per leader: the rounds of
 * lib/sync/records.h, by MPI.
 *
 * Records lie in the leader's staging memory, where its node reads them: this node's first, then those of the nodes after
 * it, around.
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
#include "lib/sync/records.h"

/** Of two nodes that send each other long data without heads: lib/sync/pairs.h. */
typedef enum fsdpi_swap { FSDPI_NO_SWAP, FSDPI_SWAPPING, FSDPI_SWAP_IN_DOUBT } fsdpi_swap;

/** Several messages of another node's that have no head, taken one by one by a rank that has listened for one. */
typedef struct fsdpi_begun {
    bool   more; /* another one follows */
    int    node;
    void  *to;      /* where they belong, or NULL: they stay behind the place of the head */
    size_t bytes;   /* that have come */
    size_t message; /* that receives the next one */
} fsdpi_begun;

/** Nodes that may exchange in pairs, at most: lib/sync/pairs.h. */
enum { FSDPI_MOST_IN_PAIRS = 16 };

typedef struct fsdpi_exchange {
    const fsdpi_nodes *nodes;
    fsdpi_mailbox     *box; /* where records lie */
    fsdpi_messages    *messages;
    fsdpi_records      records;  /* a leader's */
    bool               posted;   /* a round is under way */
    bool               in_pairs; /* agreements: lib/sync/pairs.h instead; the same on all ranks */
    size_t place; /* in pairs: BYTES of another node's place; this and those up to led_until by fsdpi_pairs_settle() */
    unsigned char *others;     /* the first of these */
    size_t         most;       /* BYTES of the longest payload; 0: there is no room for pairs */
    size_t         together;   /* BYTES of data that fit the message of its head, or have none; the same on all ranks */
    size_t         swap_until; /* BYTES of data that two nodes swap without heads, at most */
    size_t led_until; /* BYTES of data whose beginning follows the head, and the rest apart, at most; likewise */
    bool   heard;     /* in pairs: all heads have come */
    size_t heads;     /* the first message of these, or of what is received behind them; the others follow */
    bool   apart;     /* data travels in messages of its own, from this node or, once these have come, from any */
    bool   sent;      /* nothing of what precedes the heads is */
    unsigned char *outgoing; /* where the next message of theirs is put together */
    int            turn;     /* in pairs: 0 and 1 in turns */
    int            bare_tag; /* of messages without a head that say the same as this node; 0: there are none such */
    fsdpi_begun    begun;    /* by the message that has come to the place of the other node's head */
    fsdpi_swap     swap;     /* what it sends and what it receives both have no head */
    bool        is_bare; /* all others' were of that kind, and this rank is a node: their data lies where heads would */
    int         expected;                          /* the tag of data that is received already; 0: none is */
    size_t      awaited, n_awaited;                /* the first of its messages, and how many they are */
    MPI_Request kept[FSDPI_MOST_IN_PAIRS - 1];     /* persistent: receive the heads of the nodes before this one */
    int         n_kept;                            /* of these there are; 0 until the first is needed */
    MPI_Status  statuses[2 * FSDPI_MOST_IN_PAIRS]; /* of the messages, once all have come */
} fsdpi_exchange;

/** BYTES that a mailbox has behind its slots at least, for all nodes' records with a little payload. */
size_t fsdpi_exchange_least(int nodes);

/** BYTES of the largest payload of which all nodes' records fit, together in one message of MPI; room for an element at least. */
size_t fsdpi_exchange_capacity(const fsdpi_exchange *exchange);

/** This node's record, for the leader to fill in before fsdpi_exchange_advance(); its payload begins right behind. */
fsdpi_record_head *fsdpi_exchange_begin(fsdpi_exchange *exchange);

/**
 * One step of the leader's exchange.
 * @param[in] equal  all records are known to be as long as this node's, and to carry: they may be cut into messages
 */
fsdp_status fsdpi_exchange_advance(fsdpi_exchange *exchange, bool equal, fsdpi_progress *progress);

/** On a leader: the other leader whose part of the round under way is still to come; -1: no round is under way. */
int fsdpi_exchange_awaited(const fsdpi_exchange *exchange);

/** On a leader, after the last step: what all nodes say. */
const fsdpi_opinion *fsdpi_exchange_opinion(const fsdpi_exchange *exchange);

/**
 * The first of the records, for every rank of a leader's node once the leader has said that they are there, where they all
 * carry; fsdpi_record_behind() leads on. The node that the record at a place belongs to; this node's place is 0.
 */
const fsdpi_record_head *fsdpi_exchange_first(const fsdpi_exchange *exchange);
int                      fsdpi_exchange_node(const fsdpi_exchange *exchange, int place);

#endif
