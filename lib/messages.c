#include "lib/messages.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "lib/context.h"
#include "lib/error.h"
#include "lib/memory.h"

enum { MESSAGES_AT_FIRST = 32 };

static fsdp_status grow(fsdp_context *ctx)
{
    fsdpi_messages *messages = &ctx->messages;
    const size_t    capacity = messages->capacity > 0 ? 2 * messages->capacity : MESSAGES_AT_FIRST;
    MPI_Request    *list     = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, capacity * sizeof(MPI_Request));

    if (list == NULL) {
        return FSDP_ERR_MEMORY;
    }
    if (messages->n > 0) {
        memcpy(list, messages->list, messages->n * sizeof(MPI_Request));
    }
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, messages->list, messages->capacity * sizeof(MPI_Request));
    messages->list     = list;
    messages->capacity = capacity;
    return FSDP_OK;
}

static fsdp_status next_message(fsdp_context *ctx, MPI_Request **message)
{
    fsdpi_messages *messages = &ctx->messages;

    if (messages->n == messages->capacity && grow(ctx) != FSDP_OK) {
        ctx->broken = FSDP_ERR_MEMORY; /* some messages are under way, and peers wait for the rest */
        return FSDP_ERR_MEMORY;
    }
    *message  = &messages->list[messages->n++];
    **message = MPI_REQUEST_NULL;
    return FSDP_OK;
}

fsdp_status fsdpi_messages_open(fsdp_context *ctx)
{
    return grow(ctx);
}

void fsdpi_messages_close(fsdp_context *ctx)
{
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, ctx->messages.list, ctx->messages.capacity * sizeof(MPI_Request));
    ctx->messages = (fsdpi_messages){0};
}

size_t fsdpi_messages_bookkeeping(void)
{
    return fsdpi_alloc_size(MESSAGES_AT_FIRST * sizeof(MPI_Request));
}

fsdp_status fsdpi_post_send_whole(fsdp_context *ctx, const void *data, size_t bytes, int peer, int tag)
{
    MPI_Request *message;

    FSDP_TRY(next_message(ctx, &message));
    FSDPI_TRY_MPI(ctx, MPI_Isend(data, (int)bytes, MPI_BYTE, peer, tag, ctx->comm, message));
    return FSDP_OK;
}

fsdp_status fsdpi_post_receive_whole(fsdp_context *ctx, void *data, size_t most, int peer, int tag)
{
    MPI_Request *message;

    FSDP_TRY(next_message(ctx, &message));
    FSDPI_TRY_MPI(ctx, MPI_Irecv(data, most < INT_MAX ? (int)most : INT_MAX, MPI_BYTE, peer, tag, ctx->comm, message));
    return FSDP_OK;
}

fsdp_status fsdpi_post_send(fsdp_context *ctx, const void *data, size_t bytes, int peer, int tag)
{
    const size_t most = (size_t)ctx->config.message_bytes;

    for (size_t done = 0; done < bytes; done += most) {
        FSDP_TRY(fsdpi_post_send_whole(ctx, (const unsigned char *)data + done,
                                       bytes - done < most ? bytes - done : most, peer, tag));
    }
    return FSDP_OK;
}

fsdp_status fsdpi_post_receive(fsdp_context *ctx, void *data, size_t bytes, int peer, int tag)
{
    const size_t most = (size_t)ctx->config.message_bytes;

    for (size_t done = 0; done < bytes; done += most) {
        FSDP_TRY(fsdpi_post_receive_whole(ctx, (unsigned char *)data + done, bytes - done < most ? bytes - done : most,
                                          peer, tag));
    }
    return FSDP_OK;
}

fsdp_status fsdpi_post_broadcast(fsdp_context *ctx, void *data, size_t bytes, int root)
{
    const size_t most = (size_t)ctx->config.message_bytes;

    for (size_t done = 0; done < bytes; done += most) {
        const size_t piece = bytes - done < most ? bytes - done : most;
        MPI_Request *message;

        FSDP_TRY(next_message(ctx, &message));
        FSDPI_TRY_MPI(ctx, MPI_Ibcast((unsigned char *)data + done, (int)piece, MPI_BYTE, root, ctx->comm, message));
    }
    return FSDP_OK;
}

fsdp_status fsdpi_post_allgather(fsdp_context *ctx, const void *mine, void *all, size_t bytes)
{
    MPI_Request *message;

    FSDP_TRY(next_message(ctx, &message));
    FSDPI_TRY_MPI(ctx, MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, ctx->comm, message));
    return FSDP_OK;
}

fsdp_status fsdpi_messages_complete(fsdp_context *ctx, bool *complete)
{
    fsdpi_messages *messages = &ctx->messages;
    int             all      = 1;

    if (messages->n > 0) {
        FSDPI_TRY_MPI(ctx, MPI_Testall((int)messages->n, messages->list, &all, MPI_STATUSES_IGNORE));
        messages->n = all ? 0 : messages->n;
    }
    *complete = all != 0;
    return FSDP_OK;
}

void fsdpi_messages_progress(const fsdp_context *ctx)
{
    int any;

    (void)MPI_Iprobe(ctx->rank, FSDPI_TAG_RECORDS, ctx->comm, &any, MPI_STATUS_IGNORE); /* no rank sends to itself */
}
