#include "lib/exchange.h"

#include "lib/context.h"
#include "lib/messages.h"

static unsigned char *records(const fsdp_context *ctx)
{
    return fsdpi_rest_of(&ctx->box, 0);
}

static size_t record_bytes(const fsdpi_record_head *record)
{
    return sizeof *record + (size_t)(record->bytes + 7) / 8 * 8;
}

bool fsdpi_exchange_fits(size_t rest_bytes, int nodes)
{
    return rest_bytes / (size_t)nodes >= sizeof(fsdpi_record_head) + 16;
}

size_t fsdpi_exchange_capacity(const fsdp_context *ctx)
{
    return (ctx->box.rest_bytes / (size_t)ctx->nodes.count - sizeof(fsdpi_record_head)) / 8 * 8;
}

fsdpi_record_head *fsdpi_exchange_begin(fsdp_context *ctx)
{
    ctx->exchange = (fsdpi_exchange){.have = 1};
    return (fsdpi_record_head *)(void *)records(ctx);
}

/* BYTES of the first n records. */
static size_t prefix_bytes(const fsdp_context *ctx, size_t n)
{
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++) {
        bytes += record_bytes((const fsdpi_record_head *)(const void *)(records(ctx) + bytes));
    }
    return bytes;
}

static size_t in_this_round(const fsdp_context *ctx)
{
    const size_t have = ctx->exchange.have, missing = (size_t)ctx->nodes.count - have;

    return have < missing ? have : missing;
}

static int leader(const fsdp_context *ctx, size_t node)
{
    return fsdpi_rank_at(&ctx->nodes, (int)(node % (size_t)ctx->nodes.count), 0);
}

static fsdp_status post_round(fsdp_context *ctx, bool equal)
{
    fsdpi_exchange *exchange = &ctx->exchange;
    const size_t    me = (size_t)ctx->nodes.mine, nodes = (size_t)ctx->nodes.count;
    const size_t    bytes = prefix_bytes(ctx, in_this_round(ctx));
    const int       to    = leader(ctx, me + nodes - exchange->have);
    const int       from  = leader(ctx, me + exchange->have);

    exchange->end    = prefix_bytes(ctx, exchange->have);
    exchange->posted = true;
    if (equal) {
        FSDP_TRY(fsdpi_post_receive(ctx, records(ctx) + exchange->end, bytes, from, FSDPI_TAG_RECORDS));
        return fsdpi_post_send(ctx, records(ctx), bytes, to, FSDPI_TAG_RECORDS);
    }
    FSDP_TRY(fsdpi_post_receive_whole(ctx, records(ctx) + exchange->end, ctx->box.rest_bytes - exchange->end, from,
                                      FSDPI_TAG_RECORDS));
    return fsdpi_post_send_whole(ctx, records(ctx), bytes, to, FSDPI_TAG_RECORDS);
}

fsdp_status fsdpi_exchange_advance(fsdp_context *ctx, bool equal, fsdpi_progress *progress)
{
    fsdpi_exchange *exchange = &ctx->exchange;

    *progress = FSDPI_WAITING;
    if (exchange->posted) {
        bool complete;

        FSDP_TRY(fsdpi_messages_complete(ctx, &complete));
        if (!complete) {
            return FSDP_OK;
        }
        exchange->have += in_this_round(ctx);
        exchange->posted = false;
    }
    *progress = FSDPI_FINISHED;
    if (exchange->have < (size_t)ctx->nodes.count) {
        *progress = FSDPI_MOVED;
        return post_round(ctx, equal);
    }
    return FSDP_OK;
}

const fsdpi_record_head *fsdpi_exchange_record(const fsdp_context *ctx, int node)
{
    const int nodes = ctx->nodes.count;
    const int place = (node - ctx->nodes.mine + nodes) % nodes;

    return (const fsdpi_record_head *)(const void *)(records(ctx) + prefix_bytes(ctx, (size_t)place));
}
