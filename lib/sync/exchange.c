#include "lib/sync/exchange.h"

#include <limits.h>

#include "lib/base/error.h"

static unsigned char *records(const fsdpi_exchange *exchange)
{
    return fsdpi_rest_of(exchange->box, 0);
}

static size_t record_bytes(const fsdpi_record_head *record)
{
    return sizeof *record + (size_t)(record->bytes + 7) / 8 * 8;
}

bool fsdpi_exchange_fits(size_t rest_bytes, int nodes)
{
    return rest_bytes / (size_t)nodes >= sizeof(fsdpi_record_head) + 16;
}

size_t fsdpi_exchange_capacity(const fsdpi_exchange *exchange)
{
    const size_t rest = exchange->box->rest_bytes < INT_MAX ? exchange->box->rest_bytes : INT_MAX;

    return (rest / (size_t)exchange->nodes->count - sizeof(fsdpi_record_head)) / 8 * 8;
}

fsdpi_record_head *fsdpi_exchange_begin(fsdpi_exchange *exchange)
{
    exchange->have   = 1;
    exchange->end    = 0;
    exchange->posted = false;
    return (fsdpi_record_head *)(void *)records(exchange);
}

/* BYTES of the first n records. */
static size_t prefix_bytes(const fsdpi_exchange *exchange, size_t n)
{
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++) {
        bytes += record_bytes((const fsdpi_record_head *)(const void *)(records(exchange) + bytes));
    }
    return bytes;
}

static size_t in_this_round(const fsdpi_exchange *exchange)
{
    const size_t have = exchange->have, missing = (size_t)exchange->nodes->count - have;

    return have < missing ? have : missing;
}

static int leader(const fsdpi_exchange *exchange, size_t node)
{
    return fsdpi_rank_at(exchange->nodes, (int)(node % (size_t)exchange->nodes->count), 0);
}

static fsdp_status post_round(fsdpi_exchange *exchange, bool equal)
{
    const size_t me = (size_t)exchange->nodes->mine, nodes = (size_t)exchange->nodes->count;
    const size_t bytes = prefix_bytes(exchange, in_this_round(exchange));
    const int    to    = leader(exchange, me + nodes - exchange->have);
    const int    from  = leader(exchange, me + exchange->have);

    exchange->end    = prefix_bytes(exchange, exchange->have);
    exchange->posted = true;
    if (equal) {
        FSDP_TRY(
            fsdpi_post_receive(exchange->messages, records(exchange) + exchange->end, bytes, from, FSDPI_TAG_RECORDS));
        return fsdpi_post_send(exchange->messages, records(exchange), bytes, to, FSDPI_TAG_RECORDS);
    }
    FSDP_TRY(fsdpi_post_receive_whole(exchange->messages, records(exchange) + exchange->end,
                                      exchange->box->rest_bytes - exchange->end, from, FSDPI_TAG_RECORDS));
    return fsdpi_post_send_whole(exchange->messages, records(exchange), bytes, to, FSDPI_TAG_RECORDS);
}

fsdp_status fsdpi_exchange_advance(fsdpi_exchange *exchange, bool equal, fsdpi_progress *progress)
{
    *progress = FSDPI_WAITING;
    if (exchange->posted) {
        bool complete;

        FSDP_TRY(fsdpi_messages_complete(exchange->messages, &complete));
        if (!complete) {
            return FSDP_OK;
        }
        exchange->have += in_this_round(exchange);
        exchange->posted = false;
    }
    *progress = FSDPI_FINISHED;
    if (exchange->have < (size_t)exchange->nodes->count) {
        *progress = FSDPI_MOVED;
        return post_round(exchange, equal);
    }
    return FSDP_OK;
}

const fsdpi_record_head *fsdpi_exchange_record(const fsdpi_exchange *exchange, int node)
{
    const int nodes = exchange->nodes->count;
    const int place = (node - exchange->nodes->mine + nodes) % nodes;

    return (const fsdpi_record_head *)(const void *)(records(exchange) + prefix_bytes(exchange, (size_t)place));
}
