/**
 * @file
 * The exchange of records between the leaders of few nodes, each with each other one at once: M-1 messages, and no waiting for
 * rounds. What another node needs of this one's data travels with the agreement, and only that.
 *
 * A message is the head of a record (lib/sync/records.h), whose `bytes` say how much follows: short data right behind it, in the
 * same message; longer data in one of its own, from where it lies to where it belongs. Longer data is received once all heads have
 * been heard: if not all call the same it goes to where nobody looks, and no output has been written to. Between two nodes it is
 * expected before, so that it need not wait for the head: its tag says what has been called, and that of another call finds
 * nobody who expects it. Data that a head has announced may also be sent later, when all heads have come; if not all call the
 * same, it is not.
 *
 * Short data has no head where nothing but the call has to be agreed on: the tag then carries 20 bits or more of the call's hash. Such
 * a message is as long as that of MPI's own collective, which for some lengths saves a cache line, or a request of MPI's, and it need
 * not be copied behind a head. Of longer data that is cut into messages so short that MPI sends them without asking, the beginning
 * follows the head: one message less.
 *
 * Two nodes that are ranks swap long data without heads too, in one message each, or in several that MPI sends without asking, which
 * each receives straight to where the data belongs. A rank does so where it is as usual: it offers its data, and none of its earlier operations moves any more. If the other
 * one calls something else, or does not do the same, what it sends finds nobody who expects it: MPI_Iprobe() sees that, and the rank
 * takes back its receive and listens for a head. Whoever listens for heads has room for data that comes without one.
 *
 * A context exchanges all its agreements in pairs, or all in rounds, since leaders whose calls differ must hear of each other
 * too. The leader's staging memory holds its own record first, with what its node has for the others, then a place for each
 * other node, with room for a head and what follows it.
 */
#ifndef FSDPI_PAIRS_H
#define FSDPI_PAIRS_H

#include "lib/sync/exchange.h"
#include "lib/sync/link.h"

/** Some of this node's data, for another one. */
typedef struct fsdpi_portion {
    const void *data;
    size_t      bytes; /* 0: it needs none */
} fsdpi_portion;

/**
 * BYTES of data from which on it pays to receive it straight to where it belongs, even where it fits the message of its head, rather than
 * with a receive that is kept. With 4 KiB it took 3 to 5% longer over UCX and in MPICH, with 8 KiB 10% less.
 */
enum { FSDPI_LEAST_PLACED = 6 << 10 };

/** Whether data of so many BYTES may come by a message that the exchange does not begin with. */
static inline bool fsdpi_pairs_may_place(const fsdpi_exchange *exchange, size_t bytes)
{
    return bytes > exchange->together || bytes >= FSDPI_LEAST_PLACED;
}

/** BYTES of the longest payload. 0: there is no room for pairs. */
size_t fsdpi_pairs_capacity(size_t rest_bytes, int nodes, int largest_node);

/**
 * Before the first exchange in pairs, and not for each, since divisions show in the shortest operations: what there is room for. How much
 * data travels in the message of its head, and what without one, follows the link.
 */
void fsdpi_pairs_settle(fsdpi_exchange *exchange, const fsdpi_link *link);

/** Frees what receives heads: before the lane's communicator, while MPI has not ended, and with no exchange under way. */
void fsdpi_pairs_close(fsdpi_exchange *exchange);

/** On the leader: writes the head of this node's record. Its payload begins right behind. */
fsdpi_record_head *fsdpi_pairs_begin(fsdpi_exchange *exchange, const fsdpi_opinion *opinion);

/** Sends a node the head and its portion, once for each. */
fsdp_status fsdpi_pairs_send(fsdpi_exchange *exchange, int node, fsdpi_portion portion);

/** Instead: a head for so many BYTES, too long to follow it; and, when all heads have come and all call the same, these. */
fsdp_status fsdpi_pairs_announce(fsdpi_exchange *exchange, int node, size_t bytes);
fsdp_status fsdpi_pairs_send_later(fsdpi_exchange *exchange, int node, fsdpi_portion portion);

/** When all is sent, which does not wait for this: receives the heads of the others. */
fsdp_status fsdpi_pairs_listen(fsdpi_exchange *exchange);

/**
 * Before anything is sent, where there are two nodes: what the other one will send in a message of its own, to there or, if that is
 * NULL, behind its head, if it calls the same.
 */
fsdp_status fsdpi_pairs_expect(fsdpi_exchange *exchange, int node, void *to, size_t bytes);

/**
 * Instead of all these, where there are two nodes, each a rank: whether both may send data of these BYTES without heads, as far as
 * this one knows; and does so. If the other one then sends anything else, the exchange goes on as if it had sent a head.
 * `placed`: what comes has a place of its own, to which shorter data is then received straight away, too.
 */
bool        fsdpi_pairs_may_swap(const fsdpi_exchange *exchange, size_t sent, size_t received, bool placed);
fsdp_status fsdpi_pairs_swap(fsdpi_exchange *exchange, int node, fsdpi_portion portion, void *to, size_t bytes);

/**
 * Whether the heads of all nodes have come: then the opinion of this node's record is that of all, and exchange->apart says whether
 * anything follows them. Call until it is.
 */
fsdp_status fsdpi_pairs_heard(fsdpi_exchange *exchange, bool *heard);

/** While heads or portions are under way: adds the leaders whose heads have not come, or, if all have, all others. */
void fsdpi_pairs_awaited(const fsdpi_exchange *exchange, fsdpi_rank_list *list);

/** Then, for each node, if exchange->apart: receives what follows its head, if anything does, to there or, if that is NULL, behind it. */
fsdp_status fsdpi_pairs_receive(fsdpi_exchange *exchange, int node, void *to);

/** Then, until it is complete: of several messages without heads, takes those behind the first one. At once where there are none. */
fsdp_status fsdpi_pairs_begun_complete(fsdpi_exchange *exchange, bool *complete);

/** Whether all that follows the heads has come, from any node. What this node sends may still be leaving. */
fsdp_status fsdpi_pairs_received(fsdpi_exchange *exchange, bool *received);

/** What came from a node, or this node's own payload; for every rank of the node, once the leader has said that it is there. */
const unsigned char *fsdpi_pairs_payload(const fsdpi_exchange *exchange, int node);

#endif
