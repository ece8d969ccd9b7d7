#include "shard/checkpoint/cache/delivery.h"

#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/device/memory.h"

enum { TAG_NUMBER = 1, TAG_BODY, TAG_HEAD, NAP_US = 50 };

#define LEAST_PIECE ((size_t)1 << 20)

/* The same on both sides, which know the length alone. */
static size_t piece_of(const fsdpi_delivery *d)
{
    const size_t even = (d->bytes + FSDPI_DELIVERY_MESSAGES - 1) / FSDPI_DELIVERY_MESSAGES;

    return even > LEAST_PIECE ? even : LEAST_PIECE;
}

void fsdpi_delivery_begin(fsdpi_delivery *d, const fsdpi_cache_file *file, fsdpi_cache_head *head)
{
    d->body        = file->base + FSDPI_CACHE_HEAD_BYTES;
    d->bytes       = file->bytes - FSDPI_CACHE_HEAD_BYTES;
    d->piece       = piece_of(d);
    d->n           = (int)((d->bytes + d->piece - 1) / d->piece);
    d->posted      = 0;
    d->head        = head;
    d->head_posted = false;
}

static fsdp_status post(fsdpi_delivery *d, void *data, size_t bytes, int tag)
{
    return d->sends ? fsdpi_post_send_whole(&d->messages, data, bytes, d->peer, tag)
                    : fsdpi_post_receive_whole(&d->messages, data, bytes, d->peer, tag);
}

fsdp_status fsdpi_delivery_post(fsdpi_delivery *d, size_t bytes)
{
    while (d->posted < d->n && (size_t)d->posted * d->piece < bytes) {
        const size_t at = (size_t)d->posted * d->piece, left = d->bytes - at;

        FSDP_TRY(post(d, d->body + at, left < d->piece ? left : d->piece, TAG_BODY));
        d->posted++;
    }
    return FSDP_OK;
}

fsdp_status fsdpi_delivery_post_head(fsdpi_delivery *d)
{
    if (d->head_posted) {
        return FSDP_OK;
    }
    FSDP_TRY(post(d, d->head, sizeof *d->head, TAG_HEAD));
    d->head_posted = true;
    return FSDP_OK;
}

fsdp_status fsdpi_delivery_test(fsdpi_delivery *d, bool *complete)
{
    FSDP_TRY(fsdpi_messages_complete(&d->messages, complete));
    *complete = *complete && d->head_posted && d->posted == d->n;
    return FSDP_OK;
}

/* Gives the core away between two looks, as all waiting in the library does. */
fsdp_status fsdpi_delivery_wait(fsdpi_delivery *d)
{
    const int    timeout_s = d->ctx->config.timeout_s;
    const double begin     = fsdpi_seconds();
    bool         complete  = false;

    for (;;) {
        FSDP_TRY(fsdpi_messages_complete(&d->messages, &complete));
        if (complete) {
            return FSDP_OK;
        }
        if (timeout_s > 0 && fsdpi_seconds() - begin > timeout_s) {
            return fsdpi_fail_mpi(d->ctx, MPI_ERR_PENDING, d->sends ? "a partner's copy" : "a copy for a partner");
        }
        (void)usleep(NAP_US);
    }
}

bool fsdpi_delivery_is_under_way(const fsdpi_delivery *d)
{
    return d->messages.n > 0;
}

/* ---- opening and closing --------------------------------------------------------------------------------------------- */

fsdp_status fsdpi_delivery_open(fsdpi_delivery *d, fsdp_context *ctx, MPI_Comm comm, int peer, bool sends)
{
    *d = (fsdpi_delivery){.ctx = ctx, .peer = peer, .sends = sends};
    return fsdpi_messages_open(&d->messages, fsdpi_core_of(ctx), comm);
}

void fsdpi_delivery_close(fsdpi_delivery *d)
{
    if (!fsdpi_delivery_is_under_way(d)) {
        fsdpi_messages_close(&d->messages);
    }
}

size_t fsdpi_delivery_bookkeeping(const fsdpi_delivery *d)
{
    return fsdpi_alloc_size(d->messages.capacity * sizeof(MPI_Request));
}

fsdp_status fsdpi_delivery_tell(fsdpi_delivery *d, uint64_t *number)
{
    return post(d, number, sizeof *number, TAG_NUMBER);
}
