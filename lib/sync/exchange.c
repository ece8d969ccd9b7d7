#include "lib/sync/exchange.h"

#include <limits.h>

#include "lib/base/error.h"

enum { LEAST_PAYLOAD = 16 }; /* BYTES: an element of any type, and another */

static unsigned char *area(const fsdpi_exchange *exchange)
{
    return fsdpi_rest_of(exchange->box, 0);
}

size_t fsdpi_exchange_least(int nodes)
{
    return (size_t)nodes * (sizeof(fsdpi_record_head) + LEAST_PAYLOAD);
}

size_t fsdpi_exchange_capacity(const fsdpi_exchange *exchange)
{
    const size_t rest = exchange->box->rest_bytes < INT_MAX ? exchange->box->rest_bytes : INT_MAX;

    return (rest / (size_t)exchange->nodes->count - sizeof(fsdpi_record_head)) / 8 * 8;
}

fsdpi_record_head *fsdpi_exchange_begin(fsdpi_exchange *exchange)
{
    exchange->posted = false;
    return fsdpi_records_begin(&exchange->records, area(exchange), exchange->nodes->count, exchange->nodes->mine);
}

static fsdp_status post_round(fsdpi_exchange *exchange, bool equal)
{
    fsdpi_records       *records = &exchange->records;
    const fsdpi_round    round   = fsdpi_round_of(records->nodes, records->mine, records->have);
    const size_t         bytes   = fsdpi_records_leaving(records);
    unsigned char *const place   = records->area + records->end;
    const int            to      = fsdpi_rank_at(exchange->nodes, round.to, 0);
    const int            from    = fsdpi_rank_at(exchange->nodes, round.from, 0);

    exchange->posted = true;
    if (equal) {
        FSDP_TRY(fsdpi_post_receive(exchange->messages, place, bytes, from, FSDPI_TAG_RECORDS));
        return fsdpi_post_send(exchange->messages, records->area, bytes, to, FSDPI_TAG_RECORDS);
    }
    FSDP_TRY(fsdpi_post_receive_whole(exchange->messages, place, exchange->box->rest_bytes - records->end, from,
                                      FSDPI_TAG_RECORDS));
    return fsdpi_post_send_whole(exchange->messages, records->area, bytes, to, FSDPI_TAG_RECORDS);
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
        fsdpi_records_arrived(&exchange->records);
        exchange->posted = false;
    }
    *progress = FSDPI_FINISHED;
    if (exchange->records.have < exchange->records.nodes) {
        *progress = FSDPI_MOVED;
        return post_round(exchange, equal);
    }
    return FSDP_OK;
}

/* The first half of its messages are received, the others sent: see post_round(). */
int fsdpi_exchange_awaited(const fsdpi_exchange *exchange)
{
    const fsdpi_records  *records  = &exchange->records;
    const fsdpi_messages *messages = exchange->messages;

    if (!exchange->posted) {
        return -1;
    }
    const fsdpi_round round = fsdpi_round_of(records->nodes, records->mine, records->have);
    for (size_t i = 0; i < messages->n; i++) {
        int complete = 0;
        (void)MPI_Request_get_status(messages->list[i], &complete, MPI_STATUS_IGNORE);
        if (!complete) {
            return fsdpi_rank_at(exchange->nodes, i < messages->n / 2 ? round.from : round.to, 0);
        }
    }
    return -1;
}

const fsdpi_opinion *fsdpi_exchange_opinion(const fsdpi_exchange *exchange)
{
    return &fsdpi_exchange_first(exchange)->all;
}

const fsdpi_record_head *fsdpi_exchange_first(const fsdpi_exchange *exchange)
{
    return (const fsdpi_record_head *)(const void *)area(exchange);
}

int fsdpi_exchange_node(const fsdpi_exchange *exchange, int place)
{
    return (exchange->nodes->mine + place) % exchange->nodes->count;
}
