#include "lib/sync/pairs.h"

#include <limits.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/sync/bare_tags.h"
#include "lib/sync/pairs_inside.h"

static size_t rounded_down(size_t bytes)
{
    return bytes / FSDPI_LINE * FSDPI_LINE;
}

/* Where every rank is a node, what it sends is in its input, and its own record is a head. */
static size_t place_bytes(size_t rest_bytes, int nodes, int largest_node)
{
    const size_t rest = rest_bytes < INT_MAX ? rest_bytes : INT_MAX;

    return largest_node == 1 ? rounded_down((rest - FSDPI_LINE) / ((size_t)nodes - 1))
                             : rounded_down(rest / (size_t)nodes);
}

size_t fsdpi_pairs_capacity(size_t rest_bytes, int nodes, int largest_node)
{
    if (nodes < 2 || rest_bytes < (size_t)FSDPI_LINE * (size_t)(nodes + 1)) {
        return 0;
    }
    return place_bytes(rest_bytes, nodes, largest_node) - sizeof(fsdpi_record_head);
}

/* The leader's slot of the letter before this one: whoever has posted this one has done with that. */
static unsigned char *outgoing(const fsdpi_exchange *exchange)
{
    return fsdpi_slot_of(exchange->box, 0, exchange->box->number + 1);
}

void fsdpi_pairs_close(fsdpi_exchange *exchange)
{
    for (int i = 0; i < exchange->n_kept; i++) {
        (void)MPI_Request_free(&exchange->kept[i]);
    }
    exchange->n_kept = 0;
}

/* Where senders bring long data, a rank copies its own part while that comes, as soon as it has heard. */
void fsdpi_pairs_settle(fsdpi_exchange *exchange, const fsdpi_link *link)
{
    enum { SWAP_WHERE_PUSHED = 32 << 10 };
    const fsdpi_nodes *nodes    = exchange->nodes;
    const size_t       together = fsdpi_link_together(link);

    fsdpi_pairs_close(exchange);
    exchange->most       = fsdpi_pairs_capacity(exchange->box->rest_bytes, nodes->count, nodes->largest);
    exchange->place      = 0;
    exchange->together   = 0;
    exchange->led_until  = link->cut;
    exchange->swap_until = link->pulls || exchange->most < SWAP_WHERE_PUSHED ? exchange->most : SWAP_WHERE_PUSHED;
    if (exchange->most == 0) {
        return;
    }
    const size_t room  = fsdpi_slot_capacity(exchange->box) / ((size_t)nodes->count - 1) / 8 * 8;
    const size_t fits  = room > sizeof(fsdpi_record_head) ? room - sizeof(fsdpi_record_head) : 0;
    const size_t least = fits < exchange->most ? fits : exchange->most;
    exchange->place    = exchange->most + sizeof(fsdpi_record_head);
    exchange->others   = fsdpi_rest_of(exchange->box, 0) + (nodes->largest == 1 ? FSDPI_LINE : exchange->place);
    exchange->together = least < together ? least : together;
}

/* Of fsdpi_node_before(exchange->nodes, k). */
static fsdpi_record_head *record_before(const fsdpi_exchange *exchange, int k)
{
    const size_t others = (size_t)(exchange->nodes->count - k - 1);

    return (fsdpi_record_head *)(void *)(exchange->others + others * exchange->place);
}

const unsigned char *fsdpi_pairs_payload(const fsdpi_exchange *exchange, int node)
{
    const fsdpi_record_head *record = fsdpi_record_of(exchange, node);

    return (const unsigned char *)(exchange->is_bare && node != exchange->nodes->mine ? record : record + 1);
}

/*
 * In `bytes` of a head: what it announces is sent later; of a message without one: long data has come in it; or its beginning has, and
 * more messages bring the rest.
 */
static const uint64_t LATER = (uint64_t)1 << 63, HERE = (uint64_t)1 << 62, BEGUN = (uint64_t)1 << 61;

static size_t announced(const fsdpi_record_head *head)
{
    return (size_t)(head->bytes & ~(LATER | HERE | BEGUN));
}

/*
 * Of data that is cut into messages which MPI sends without asking, as much follows the head as fits the first of them: BYTES. Data that
 * is sent later has no lead; it is longer.
 */
static size_t lead_of(const fsdpi_exchange *exchange, size_t bytes)
{
    return bytes > exchange->together && bytes <= exchange->led_until ? exchange->together : 0;
}

/*
 * Of the data that a head announces. Calls that differ have different ones, but for some in as many as there are; and so has the same call
 * in the next agreement: see lib/sync/bare_tags.h.
 */
static int portion_tag(const fsdpi_exchange *exchange, const fsdpi_record_head *head)
{
    const int      end  = fsdpi_end_of_other_tags(fsdpi_first_bare_tag_of(exchange));
    const uint64_t tags = (uint64_t)(end - FSDPI_TAG_PORTIONS) / 2;
    const uint64_t call = fsdpi_hash_word(announced(head), head->all.call);

    return FSDPI_TAG_PORTIONS + 2 * (int)(call % tags) + exchange->turn;
}

/* ---- messages without a head ---------------------------------------------------------------------------------------- */

/* A message that has come to the place of a record: if its tag says what a head says, that is put in front of the data. */
static void complete_record(fsdpi_exchange *exchange, fsdpi_record_head *record, const fsdpi_opinion *own,
                            const MPI_Status *status)
{
    const int tag   = status->MPI_TAG;
    int       bytes = 0;

    if (tag == FSDPI_TAG_RECORDS) {
        return;
    }
    (void)MPI_Get_count(status, MPI_BYTE, &bytes);
    memmove(record + 1, record, (size_t)bytes);
    record->bytes = (uint64_t)bytes | ((size_t)bytes > exchange->together ? HERE : 0);
    record->all   = fsdpi_opinion_of_tag(fsdpi_first_bare_tag_of(exchange), exchange->turn, own, tag);
    if (fsdpi_is_tag_of_begun(fsdpi_first_bare_tag_of(exchange), tag)) {
        record->bytes = (uint64_t)bytes | BEGUN;
    }
}

/* ---- an exchange ---------------------------------------------------------------------------------------------------- */

fsdpi_record_head *fsdpi_pairs_begin(fsdpi_exchange *exchange, const fsdpi_opinion *opinion)
{
    fsdpi_record_head *record = fsdpi_own_record(exchange);

    *record            = (fsdpi_record_head){.all = *opinion};
    exchange->posted   = false;
    exchange->heard    = false;
    exchange->apart    = false;
    exchange->sent     = false;
    exchange->outgoing = outgoing(exchange);
    exchange->expected = 0;
    exchange->swap     = FSDPI_NO_SWAP;
    exchange->is_bare  = false;
    exchange->begun    = (fsdpi_begun){0};
    exchange->turn     = (int)(exchange->box->number % 2);
    exchange->bare_tag = fsdpi_bare_tag(fsdpi_first_bare_tag_of(exchange), exchange->turn, opinion);
    return record;
}

/*
 * The heads of each operation come from the same leaders to the same places: MPI looks at that once. Of what an operation sends
 * between two leaders in this lane, a head is the first, so that whatever its tag nothing else is taken for it.
 */
static fsdp_status keep_receives(fsdpi_exchange *exchange)
{
    const fsdpi_nodes *nodes = exchange->nodes;
    const size_t       most  = nodes->count == 2 ? exchange->place : sizeof(fsdpi_record_head) + exchange->together;

    for (int k = 1; k < nodes->count; k++) {
        const int leader = fsdpi_rank_at(nodes, fsdpi_node_before(nodes, k), 0);
        FSDPI_TRY_MPI(exchange->messages->core->ctx,
                      MPI_Recv_init(record_before(exchange, k), (int)most, MPI_BYTE, leader, MPI_ANY_TAG,
                                    exchange->messages->comm, &exchange->kept[k - 1]));
        exchange->n_kept = k;
    }
    return FSDP_OK;
}

fsdp_status fsdpi_pairs_listen(fsdpi_exchange *exchange)
{
    exchange->heads = exchange->messages->n;
    if (exchange->n_kept == 0) {
        FSDP_TRY(keep_receives(exchange));
    }
    for (int i = 0; i < exchange->n_kept; i++) {
        FSDP_TRY(fsdpi_post_kept(exchange->messages, &exchange->kept[i]));
    }
    /* What is sent is tested here, while the heads come, rather than behind them: so short a message has mostly gone already. */
    return exchange->apart || FSDPI_EVERY_TEST_MOVES
               ? FSDP_OK
               : fsdpi_messages_some_complete(exchange->messages, 0, exchange->heads, &exchange->sent);
}

/* Short data behind a head of its own. */
static fsdp_status send_together(fsdpi_exchange *exchange, int leader, const fsdpi_record_head *head, const void *data)
{
    unsigned char *message = exchange->outgoing;
    const size_t   bytes   = sizeof *head + head->bytes;

    memcpy(message, head, sizeof *head);
    memcpy(message + sizeof *head, data, head->bytes);
    exchange->outgoing += (bytes + 7) / 8 * 8;
    return fsdpi_post_send_whole(exchange->messages, message, bytes, leader, FSDPI_TAG_RECORDS);
}

/* A head, and so much behind it of longer data, the rest of which has messages of its own. */
static fsdp_status send_head(fsdpi_exchange *exchange, int leader, const fsdpi_record_head *head, const void *data,
                             size_t bytes)
{
    unsigned char *message = exchange->outgoing;

    memcpy(message, head, sizeof *head);
    if (bytes > 0) {
        memcpy(message + sizeof *head, data, bytes);
    }
    exchange->apart = true;
    exchange->outgoing += sizeof *head + bytes;
    return fsdpi_post_send_whole(exchange->messages, message, sizeof *head + bytes, leader, FSDPI_TAG_RECORDS);
}

static fsdp_status send_apart(fsdpi_exchange *exchange, int leader, const fsdpi_record_head *head, const void *data)
{
    const size_t lead = lead_of(exchange, head->bytes);

    FSDP_TRY(send_head(exchange, leader, head, data, lead));
    return fsdpi_post_send(exchange->messages, (const unsigned char *)data + lead, head->bytes - lead, leader,
                           portion_tag(exchange, head));
}

fsdp_status fsdpi_pairs_announce(fsdpi_exchange *exchange, int node, size_t bytes)
{
    const fsdpi_record_head head = {.all = fsdpi_own_record(exchange)->all, .bytes = bytes | LATER};

    return send_head(exchange, fsdpi_rank_at(exchange->nodes, node, 0), &head, NULL, 0);
}

fsdp_status fsdpi_pairs_send_later(fsdpi_exchange *exchange, int node, fsdpi_portion portion)
{
    const fsdpi_record_head head = {.all = fsdpi_own_record(exchange)->all, .bytes = portion.bytes};

    return fsdpi_post_send(exchange->messages, portion.data, portion.bytes, fsdpi_rank_at(exchange->nodes, node, 0),
                           portion_tag(exchange, &head));
}

static __attribute__((noinline)) fsdp_status send_with_head(fsdpi_exchange *exchange, int leader, fsdpi_portion portion)
{
    const fsdpi_record_head *own  = fsdpi_own_record(exchange);
    const fsdpi_record_head  head = {.all = own->all, .bytes = portion.bytes};

    if (portion.bytes == 0) {
        return fsdpi_post_send_whole(exchange->messages, own, sizeof *own, leader, FSDPI_TAG_RECORDS);
    }
    return portion.bytes <= exchange->together ? send_together(exchange, leader, &head, portion.data)
                                               : send_apart(exchange, leader, &head, portion.data);
}

fsdp_status fsdpi_pairs_send(fsdpi_exchange *exchange, int node, fsdpi_portion portion)
{
    const int leader = fsdpi_rank_at(exchange->nodes, node, 0);

    return portion.bytes <= exchange->together && exchange->bare_tag != 0
               ? fsdpi_post_send_whole(exchange->messages, portion.data, portion.bytes, leader, exchange->bare_tag)
               : send_with_head(exchange, leader, portion);
}

/* ---- what has come -------------------------------------------------------------------------------------------------- */

/*
 * Whether all that has come, where nobody but this rank looks, has the tag that this node's call has: then there are no heads, nothing
 * to join, and nothing that follows.
 */
static bool all_is_bare(const fsdpi_exchange *exchange, const MPI_Status *statuses)
{
    bool same = exchange->bare_tag != 0 && !exchange->apart && exchange->nodes->largest == 1;

    for (int k = 1; k < exchange->nodes->count && same; k++) {
        same = statuses[k - 1].MPI_TAG == exchange->bare_tag;
    }
    return same;
}

/* For the heads; or, where that is better, for all messages at first: one has been sent to each node, and one comes from each. */
static fsdp_status look_for_heads(fsdpi_exchange *exchange, bool *heard, const MPI_Status **statuses)
{
    const size_t heads = exchange->heads, n = exchange->messages->n;
    int          most = fsdpi_pairs_looks(exchange);

    *statuses = exchange->statuses;
    if (FSDPI_EVERY_TEST_MOVES && !exchange->apart) {
        FSDP_TRY(fsdpi_pairs_look_for(exchange, 0, n, most, heard));
        *statuses      = exchange->statuses + (*heard ? heads : 0);
        exchange->sent = *heard;
        most           = 1; /* what was sent may take long to leave */
    }
    return *heard ? FSDP_OK : fsdpi_pairs_look_for(exchange, heads, n - heads, most, heard);
}

/* What has come with heads, or says something else than this node. */
static __attribute__((noinline)) void join_heads(fsdpi_exchange *exchange, const MPI_Status *statuses)
{
    fsdpi_record_head  *own  = fsdpi_own_record(exchange);
    const fsdpi_opinion mine = own->all;

    for (int k = 1; k < exchange->nodes->count; k++) {
        fsdpi_record_head *record = record_before(exchange, k);

        complete_record(exchange, record, &mine, &statuses[k - 1]);
        fsdpi_join(&own->all, &record->all);
        exchange->apart = exchange->apart || record->bytes > exchange->together;
    }
}

fsdp_status fsdpi_pairs_heard(fsdpi_exchange *exchange, bool *heard)
{
    const MPI_Status *statuses;

    if (exchange->swap != FSDPI_NO_SWAP) {
        return fsdpi_pairs_hear_swap(exchange, heard);
    }
    FSDP_TRY(look_for_heads(exchange, heard, &statuses));
    if (!*heard) {
        return FSDP_OK;
    }
    exchange->heads       = exchange->sent ? 0 : exchange->heads; /* and what follows them takes their places */
    exchange->messages->n = exchange->heads;
    exchange->is_bare     = all_is_bare(exchange, statuses);
    if (!exchange->is_bare) {
        join_heads(exchange, statuses);
    }
    return FSDP_OK;
}

void fsdpi_pairs_awaited(const fsdpi_exchange *exchange, fsdpi_rank_list *list)
{
    const fsdpi_nodes    *nodes    = exchange->nodes;
    const fsdpi_messages *messages = exchange->messages;

    for (int k = 1; k < nodes->count; k++) {
        const size_t i = exchange->heads + (size_t)k - 1; /* where its head is received: see fsdpi_pairs_listen() */
        int          complete = 0;

        if (i < messages->n && !exchange->heard) {
            (void)MPI_Request_get_status(messages->list[i], &complete, MPI_STATUS_IGNORE);
        }
        if (!complete) {
            fsdpi_rank_list_add(list, fsdpi_rank_at(nodes, fsdpi_node_before(nodes, k), 0));
        }
    }
}

/* What comes behind a head, and behind its lead. */
static fsdp_status receive_rest(fsdpi_exchange *exchange, int node, void *to, size_t bytes, size_t lead, int tag)
{
    unsigned char *data = to != NULL ? to : (void *)(fsdpi_record_of(exchange, node) + 1);

    return fsdpi_post_receive(exchange->messages, data + lead, bytes - lead, fsdpi_rank_at(exchange->nodes, node, 0),
                              tag);
}

fsdp_status fsdpi_pairs_expect(fsdpi_exchange *exchange, int node, void *to, size_t bytes)
{
    const fsdpi_record_head expected = {.all = fsdpi_own_record(exchange)->all, .bytes = bytes};

    exchange->apart    = true;
    exchange->expected = portion_tag(exchange, &expected);
    exchange->awaited  = exchange->messages->n;
    FSDP_TRY(receive_rest(exchange, node, to, bytes, lead_of(exchange, bytes), exchange->expected));
    exchange->n_awaited = exchange->messages->n - exchange->awaited;
    return FSDP_OK;
}

/* The next of several messages that have no heads: between two leaders nothing else comes before the last one. */
static fsdp_status receive_next(fsdpi_exchange *exchange)
{
    fsdpi_begun   *begun = &exchange->begun;
    unsigned char *data  = (unsigned char *)(fsdpi_record_of(exchange, begun->node) + 1);

    begun->message = exchange->messages->n;
    return fsdpi_post_receive_whole(exchange->messages, data + begun->bytes, exchange->messages->cut.piece,
                                    fsdpi_rank_at(exchange->nodes, begun->node, 0), MPI_ANY_TAG);
}

fsdp_status fsdpi_pairs_receive(fsdpi_exchange *exchange, int node, void *to)
{
    if (exchange->swap != FSDPI_NO_SWAP) {
        return FSDP_OK;
    }
    fsdpi_record_head *record   = fsdpi_record_of(exchange, node);
    const bool         is_begun = (record->bytes & BEGUN) != 0, is_here = (record->bytes & HERE) != 0;
    const bool         is_sent = (record->bytes & LATER) == 0 || fsdpi_carries(&fsdpi_own_record(exchange)->all);
    const bool         comes   = announced(record) > exchange->together && is_sent && !is_here && !is_begun;
    const int          tag = comes ? portion_tag(exchange, record) : 0, expected = exchange->expected;
    const size_t       lead = lead_of(exchange, announced(record));

    if (to != NULL && (comes || is_here)) {
        memcpy(to, record + 1, is_here ? announced(record) : lead);
    }
    if (comes && tag == expected) {
        return FSDP_OK;
    }
    if (expected != 0) {
        FSDP_TRY(fsdpi_messages_cancel(exchange->messages, exchange->awaited, exchange->n_awaited));
    }
    if (is_begun) {
        exchange->begun = (fsdpi_begun){.more = true, .node = node, .to = to, .bytes = announced(record)};
        return receive_next(exchange);
    }
    return comes ? receive_rest(exchange, node, to, announced(record), lead, tag) : FSDP_OK;
}

fsdp_status fsdpi_pairs_begun_complete(fsdpi_exchange *exchange, bool *complete)
{
    fsdpi_begun *begun = &exchange->begun;

    for (bool here = true; begun->more && here;) {
        MPI_Status status = {0};
        int        bytes  = 0;

        FSDP_TRY(fsdpi_messages_received(exchange->messages, begun->message, 1, &status, &here));
        if (here) {
            (void)MPI_Get_count(&status, MPI_BYTE, &bytes);
            begun->bytes += (size_t)bytes;
            begun->more = fsdpi_is_tag_of_begun(fsdpi_first_bare_tag_of(exchange), status.MPI_TAG);
            FSDP_TRY(begun->more ? receive_next(exchange) : FSDP_OK);
        }
    }
    *complete = !begun->more;
    if (*complete && begun->to != NULL) {
        memcpy(begun->to, fsdpi_record_of(exchange, begun->node) + 1, begun->bytes);
        begun->to = NULL;
    }
    return FSDP_OK;
}

/* What was expected is received before anything is sent, and what was not, behind the heads. */
fsdp_status fsdpi_pairs_received(fsdpi_exchange *exchange, bool *received)
{
    fsdpi_messages *messages = exchange->messages;

    *received = true;
    if (exchange->expected != 0) {
        FSDP_TRY(fsdpi_messages_some_complete(messages, exchange->awaited, exchange->n_awaited, received));
    }
    return *received && messages->n > exchange->heads
               ? fsdpi_messages_some_complete(messages, exchange->heads, messages->n - exchange->heads, received)
               : FSDP_OK;
}
