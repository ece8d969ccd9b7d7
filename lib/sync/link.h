/**
 * @file
 * What messages between nodes cost, measured once when a context opens: which algorithms are chosen across nodes, and how large the
 * pieces should be that data travels in, depends on it. The same values on all ranks.
 */
#ifndef FSDPI_LINK_H
#define FSDPI_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/node/nodes.h"
#include "lib/sync/mailbox.h"
#include "lib/sync/messages.h"

typedef struct fsdpi_link {
    double rate;  /* BYTES per second that every leader can send and receive at once; 0: not known */
    double fresh; /* the same of bytes that have just been written, and may have to come from caches; 0: not known */
    double cold;  /* the same of bytes that no cache holds; 0: not known */
    double alpha; /* SECONDS that a short message takes, each way at once; 0: not known */
    double busy;  /* the same where every rank sends one, and not only a leader: longer if ranks share cores */
    double gap;   /* and each further one that is sent with it */
    size_t eager; /* BYTES that MPI sends without asking the receiver first, unlike twice as many; 0: not found */
    size_t cut;   /* BYTES up to which data takes less time in such pieces than whole */
    bool   pulls; /* MPI brings a long message that waits for its receiver in the call that asks for it */
} fsdpi_link;

/**
 * Measures: every leader sends to the next node's and receives from the one before it, so that all links are busy as they are in
 * a collective. The slowest one counts. Collective; without effect on one node. Long messages need room in staging memory.
 *
 * @return FSDP_OK; FSDP_ERR_MPI, FSDP_ERR_TIMEOUT
 */
fsdp_status fsdpi_link_measure(const fsdpi_nodes *nodes, const fsdpi_mailbox *box, fsdpi_link *link);

/**
 * What is known of data that travels in pieces. `ALONE`: nothing is done with a piece but to receive it where it belongs, or nothing
 * could be done while another one comes, so that longer ones do not keep any work waiting. `PLAIN`: it is not the library's memory.
 * `GATHERED`: none of it is reduced.
 */
typedef enum fsdpi_pieces { FSDPI_PIECES_ALONE = 1, FSDPI_PIECES_PLAIN = 2, FSDPI_PIECES_GATHERED = 4 } fsdpi_pieces;

/**
 * BYTES of the pieces in which long data travels over a link. `kind`: fsdpi_pieces. `vector`: BYTES of all of it between two nodes;
 * SIZE_MAX between more.
 */
size_t fsdpi_link_chunk(const fsdpi_link *link, unsigned kind, size_t vector);

/**
 * Whether data comes clearly faster from the caches of a core on another node that has just written it than from memory: not between
 * cores that are far from each other. True if that is not known.
 */
bool fsdpi_link_caches_are_faster(const fsdpi_link *link);

/**
 * Whether a rank does best to copy its own part of `vector` BYTES when all that comes from another node has come, and not meanwhile:
 * where its core brings what comes, nothing comes while it copies.
 */
bool fsdpi_link_copies_last(const fsdpi_link *link, size_t vector);

/**
 * BYTES of the pieces in which `bytes` BYTES are best passed on from node to node, `hops` times: the last node has to wait for one of
 * them at each hop, and each costs a question to its receiver. `most`: what fsdpi_link_chunk() says.
 */
size_t fsdpi_link_hop(const fsdpi_link *link, size_t bytes, int hops, size_t most);

/** BYTES of data that is cut where the link is a slow one, at most: much longer data does better in turns, as the rails send it. */
enum { FSDPI_CUT_SLOW = 128 << 10 };

/**
 * BYTES up to which data takes less time in pieces of `piece` BYTES, which MPI sends without asking, than whole: the more pieces, the more
 * is copied by way of MPI's own buffers. 64 KiB at most; where even two pieces take longer, a quarter more than one.
 *
 * @param whole, pieces  SECONDS of 2, 4, 8, ... times as much, `n` of either
 */
size_t fsdpi_link_cut_until(size_t piece, int n, const double *whole, const double *pieces);

/** How data that is sent at once, whatever its length, is cut into messages that MPI sends without asking the receiver first. */
fsdpi_cut fsdpi_link_cut(const fsdpi_link *link);

/** Whether it was measured to bring more than an Ethernet of 10 Gbit/s can. */
bool fsdpi_link_is_fast(const fsdpi_link *link);

/** Whether it was measured to be one on which the link and not the core bounds what a message takes: about 12 Gbit/s or less. */
bool fsdpi_link_is_slow(const fsdpi_link *link);

/** BYTES of a message that arrives though the receiver computes, since MPI sends it without asking; 0: they need not be so short. */
size_t fsdpi_link_piece(const fsdpi_link *link);

/**
 * BYTES up to which, in an allreduce, two ranks with such a link between them should each send everything and reduce it, instead of
 * sending half and then half of the result. The bytes on the link are the same. Sending everything waits for no reduction, but each
 * rank reduces twice as much. `cached`: caches still hold what they have.
 */
size_t fsdpi_link_whole(const fsdpi_link *link, bool cached);

/**
 * SECONDS that who carries an operation out over such a link may sleep between two looks, where others want the core: what the
 * system's own buffers hold lasts as long.
 */
double fsdpi_link_nap(const fsdpi_link *link);

/** BYTES up to which data costs less to copy behind the head that says what comes than a message of its own does. */
size_t fsdpi_link_together(const fsdpi_link *link);

#endif
