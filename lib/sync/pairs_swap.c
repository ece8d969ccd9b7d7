#include <stdint.h>

#include "lib/sync/bare_tags.h"
#include "lib/sync/pairs.h"
#include "lib/sync/pairs_inside.h"

/* Of messages, at most: there is a status for each that is received, and, where all are tested together, for each that is sent. */
enum { MOST = FSDPI_MOST_IN_PAIRS };

/* The messages in which data is swapped: several where MPI sends it without asking in pieces, but not whole. 0: it is not. */
static size_t pieces_of(const fsdpi_exchange *exchange, size_t bytes)
{
    const size_t piece = exchange->messages->cut.piece;

    if (fsdpi_is_one_message(exchange->messages, bytes)) {
        return 1;
    }
    return piece > 0 && bytes <= exchange->led_until && bytes <= MOST * piece ? (bytes + piece - 1) / piece : 0;
}

static bool may_be_swapped(const fsdpi_exchange *exchange, size_t bytes)
{
    return pieces_of(exchange, bytes) > 0;
}

bool fsdpi_pairs_may_swap(const fsdpi_exchange *exchange, size_t sent, size_t received, bool placed)
{
    const size_t least = sent < received ? sent : received, longest = sent < received ? received : sent;
    const bool   pays = placed ? least >= FSDPI_LEAST_PLACED : least > exchange->together;

    return exchange->bare_tag != 0 && fsdpi_is_usual(&fsdpi_own_record(exchange)->all) &&
           exchange->nodes->largest == 1 && pays && longest <= exchange->swap_until && may_be_swapped(exchange, sent) &&
           may_be_swapped(exchange, received);
}

/* All but the first are as long as such a message can be. All but the last say that more follow. */
static fsdp_status post_swapped(fsdpi_exchange *exchange, int leader, unsigned char *data, size_t bytes, bool is_sent)
{
    fsdpi_messages *messages = exchange->messages;
    const size_t    piece = messages->cut.piece, n = pieces_of(exchange, bytes);
    const int       begun  = fsdpi_tag_of_begun(fsdpi_first_bare_tag_of(exchange), exchange->bare_tag);
    size_t          length = bytes - (n - 1) * piece;

    for (size_t i = 1; i <= n; i++) {
        const int tag = i < n ? begun : exchange->bare_tag;

        FSDP_TRY(is_sent ? fsdpi_post_send_whole(messages, data, length, leader, tag)
                         : fsdpi_post_receive_whole(messages, data, length, leader, tag));
        data += length;
        length = piece;
    }
    return FSDP_OK;
}

fsdp_status fsdpi_pairs_swap(fsdpi_exchange *exchange, int node, fsdpi_portion portion, void *to, size_t bytes)
{
    const int leader = fsdpi_rank_at(exchange->nodes, node, 0);

    exchange->apart    = true;
    exchange->swap     = FSDPI_SWAPPING;
    exchange->expected = exchange->bare_tag;
    exchange->awaited  = exchange->messages->n;
    FSDP_TRY(
        post_swapped(exchange, leader, to != NULL ? to : (void *)(fsdpi_record_of(exchange, node) + 1), bytes, false));
    exchange->n_awaited = exchange->messages->n - exchange->awaited;
    FSDP_TRY(post_swapped(exchange, leader, (unsigned char *)(uintptr_t)portion.data, portion.bytes, true));
    exchange->heads = exchange->messages->n;
    return FSDP_OK;
}

/* Where something else has come than what the same call sends: unless that has come before it, takes back what was to receive that. */
static fsdp_status doubt_swap(fsdpi_exchange *exchange)
{
    const fsdpi_nodes *nodes = exchange->nodes;
    int                found = 0;

    FSDPI_TRY_MPI(exchange->messages->core->ctx,
                  MPI_Iprobe(fsdpi_rank_at(nodes, fsdpi_node_before(nodes, 1), 0), MPI_ANY_TAG,
                             exchange->messages->comm, &found, MPI_STATUS_IGNORE));
    if (found != 0) {
        exchange->swap = FSDPI_SWAP_IN_DOUBT;
        FSDP_TRY(fsdpi_messages_cancel(exchange->messages, exchange->awaited, exchange->n_awaited));
    }
    return FSDP_OK;
}

/*
 * What was to be received is there, or has been taken back, all of it, since messages keep their order: then the other node's head is
 * received, as if there had been no swap.
 */
static fsdp_status end_swap(fsdpi_exchange *exchange, const MPI_Status *status, bool *heard)
{
    int taken_back = 0;

    if (exchange->swap == FSDPI_SWAP_IN_DOUBT) {
        FSDPI_TRY_MPI(exchange->messages->core->ctx, MPI_Test_cancelled(status, &taken_back));
    }
    *heard = taken_back == 0;
    if (taken_back != 0) {
        exchange->swap     = FSDPI_NO_SWAP;
        exchange->expected = 0;
        return fsdpi_pairs_listen(exchange);
    }
    return FSDP_OK;
}

fsdp_status fsdpi_pairs_hear_swap(fsdpi_exchange *exchange, bool *heard)
{
    int  most     = fsdpi_pairs_looks(exchange);
    bool complete = false;

    if (FSDPI_EVERY_TEST_MOVES) {
        FSDP_TRY(fsdpi_pairs_look_for(exchange, exchange->awaited, exchange->messages->n - exchange->awaited, most,
                                      &complete));
        exchange->messages->n = complete ? exchange->awaited : exchange->messages->n;
        most                  = 1; /* what was sent may take long to leave */
    }
    if (!complete) {
        FSDP_TRY(fsdpi_pairs_look_for(exchange, exchange->awaited, exchange->n_awaited, most, &complete));
    }
    if (complete) {
        return end_swap(exchange, &exchange->statuses[0], heard);
    }
    return exchange->swap == FSDPI_SWAPPING ? doubt_swap(exchange) : FSDP_OK;
}
