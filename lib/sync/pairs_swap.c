#include "lib/sync/bare_tags.h"
#include "lib/sync/pairs.h"
#include "lib/sync/pairs_inside.h"

/*
 * BYTES of the first of two messages, where MPI sends data without asking in two but not in one; 0: other data. The second one always has
 * as many bytes as such a message can have, so that the length of the first tells how long both are.
 */
static size_t first_of_two(const fsdpi_exchange *exchange, size_t bytes)
{
    const size_t piece = exchange->messages->cut.piece;

    return bytes > piece && bytes <= 2 * piece && bytes <= exchange->led_until ? bytes - piece : 0;
}

static bool may_be_swapped(const fsdpi_exchange *exchange, size_t bytes)
{
    return fsdpi_is_one_message(exchange->messages, bytes) || first_of_two(exchange, bytes) > 0;
}

bool fsdpi_pairs_may_swap(const fsdpi_exchange *exchange, size_t sent, size_t received)
{
    const size_t least = sent < received ? sent : received, longest = sent < received ? received : sent;

    return exchange->bare_tag != 0 && fsdpi_is_usual(&fsdpi_own_record(exchange)->all) &&
           exchange->nodes->largest == 1 && least > exchange->together && longest <= exchange->swap_until &&
           may_be_swapped(exchange, sent) && may_be_swapped(exchange, received);
}

typedef struct cut_data {
    size_t first; /* BYTES of the first message; the second has the rest, if any */
    int    tag;
} cut_data;

static cut_data cut_for_swap(const fsdpi_exchange *exchange, size_t bytes)
{
    const size_t first = first_of_two(exchange, bytes);
    const int    two   = fsdpi_tag_of_two(fsdpi_first_bare_tag_of(exchange), exchange->bare_tag);

    return first > 0 ? (cut_data){first, two} : (cut_data){bytes, exchange->bare_tag};
}

static fsdp_status receive_swapped(fsdpi_exchange *exchange, int leader, unsigned char *to, size_t bytes)
{
    const cut_data cut = cut_for_swap(exchange, bytes);

    FSDP_TRY(fsdpi_post_receive_whole(exchange->messages, to, cut.first, leader, cut.tag));
    return cut.first == bytes
               ? FSDP_OK
               : fsdpi_post_receive_whole(exchange->messages, to + cut.first, bytes - cut.first, leader, cut.tag);
}

static fsdp_status send_swapped(fsdpi_exchange *exchange, int leader, fsdpi_portion portion)
{
    const cut_data       cut  = cut_for_swap(exchange, portion.bytes);
    const unsigned char *rest = (const unsigned char *)portion.data + cut.first;

    FSDP_TRY(fsdpi_post_send_whole(exchange->messages, portion.data, cut.first, leader, cut.tag));
    return cut.first == portion.bytes
               ? FSDP_OK
               : fsdpi_post_send_whole(exchange->messages, rest, portion.bytes - cut.first, leader, cut.tag);
}

fsdp_status fsdpi_pairs_swap(fsdpi_exchange *exchange, int node, fsdpi_portion portion, void *to, size_t bytes)
{
    const int leader = fsdpi_rank_at(exchange->nodes, node, 0);

    exchange->apart    = true;
    exchange->swap     = FSDPI_SWAPPING;
    exchange->expected = exchange->bare_tag;
    exchange->awaited  = exchange->messages->n;
    FSDP_TRY(receive_swapped(exchange, leader, to != NULL ? to : (void *)(fsdpi_record_of(exchange, node) + 1), bytes));
    exchange->n_awaited = exchange->messages->n - exchange->awaited;
    FSDP_TRY(send_swapped(exchange, leader, portion));
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
    bool complete = false;

    FSDP_TRY(
        fsdpi_pairs_look_for(exchange, exchange->awaited, exchange->n_awaited, fsdpi_pairs_looks(exchange), &complete));
    if (complete) {
        return end_swap(exchange, &exchange->statuses[0], heard);
    }
    return exchange->swap == FSDPI_SWAPPING ? doubt_swap(exchange) : FSDP_OK;
}
