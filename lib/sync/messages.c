#include "lib/sync/messages.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/device/memory.h"
#include "lib/sync/bare_tags.h"

enum { MESSAGES_AT_FIRST = 32 };

static fsdp_status grow(fsdpi_messages *messages)
{
    const size_t twice    = messages->capacity > 0 ? 2 * messages->capacity : MESSAGES_AT_FIRST;
    const size_t capacity = twice < INT_MAX ? twice : INT_MAX;
    MPI_Request *list     = fsdpi_alloc(messages->core->ctx, FSDP_MEMORY_BOOKKEEPING, capacity * sizeof(MPI_Request));

    if (list == NULL) {
        return FSDP_ERR_MEMORY;
    }
    if (messages->n > 0) {
        memcpy(list, messages->list, messages->n * sizeof(MPI_Request));
    }
    fsdpi_free(messages->core->ctx, FSDP_MEMORY_BOOKKEEPING, messages->list, messages->capacity * sizeof(MPI_Request));
    messages->list     = list;
    messages->capacity = capacity;
    return FSDP_OK;
}

fsdp_status fsdpi_messages_make_room(fsdpi_messages *messages)
{
    if (messages->n == INT_MAX) {
        messages->core->broken = FSDP_ERR_MPI;
        (void)fsdpi_fail(messages->core->ctx, FSDP_ERR_MPI,
                         "MPI cannot wait for more than %d messages at once; raise FSDP_MESSAGE_BYTES from %lld",
                         INT_MAX, (long long)messages->core->config.message_bytes);
        return FSDP_ERR_MPI;
    }
    if (grow(messages) != FSDP_OK) {
        messages->core->broken = FSDP_ERR_MEMORY; /* some messages are under way, and peers wait for the rest */
        return FSDP_ERR_MEMORY;
    }
    return FSDP_OK;
}

/* 32767 is what every MPI has. */
static int largest_tag(MPI_Comm comm)
{
    enum { LEAST = 32767 };
    int *tag = NULL, found = 0;

    return MPI_Comm_get_attr(comm, MPI_TAG_UB, (void *)&tag, &found) == MPI_SUCCESS && found && *tag > LEAST ? *tag
                                                                                                             : LEAST;
}

fsdp_status fsdpi_messages_open(fsdpi_messages *messages, fsdpi_core *core, MPI_Comm comm)
{
    messages->core           = core;
    messages->comm           = comm;
    messages->largest_tag    = largest_tag(comm);
    messages->first_bare_tag = fsdpi_first_bare_tag(messages->largest_tag);
    return grow(messages);
}

void fsdpi_messages_close(fsdpi_messages *messages)
{
    if (messages->core != NULL) {
        fsdpi_free(messages->core->ctx, FSDP_MEMORY_BOOKKEEPING, messages->list,
                   messages->capacity * sizeof(MPI_Request));
    }
    *messages = (fsdpi_messages){0};
}

size_t fsdpi_messages_bookkeeping(void)
{
    return fsdpi_alloc_size(MESSAGES_AT_FIRST * sizeof(MPI_Request));
}

/* BYTES of the pieces of so many. */
static size_t piece_bytes(const fsdpi_messages *messages, size_t bytes)
{
    const size_t most = (size_t)messages->core->config.message_bytes;

    return bytes <= messages->cut.until && messages->cut.piece < most ? messages->cut.piece : most;
}

bool fsdpi_is_one_message(const fsdpi_messages *messages, size_t bytes)
{
    return bytes <= piece_bytes(messages, bytes);
}

fsdp_status fsdpi_post_send(fsdpi_messages *messages, const void *data, size_t bytes, int peer, int tag)
{
    const size_t most = piece_bytes(messages, bytes);

    for (size_t done = 0; done < bytes; done += most) {
        FSDP_TRY(fsdpi_post_send_whole(messages, (const unsigned char *)data + done,
                                       bytes - done < most ? bytes - done : most, peer, tag));
    }
    return FSDP_OK;
}

fsdp_status fsdpi_post_receive(fsdpi_messages *messages, void *data, size_t bytes, int peer, int tag)
{
    const size_t most = piece_bytes(messages, bytes);

    for (size_t done = 0; done < bytes; done += most) {
        FSDP_TRY(fsdpi_post_receive_whole(messages, (unsigned char *)data + done,
                                          bytes - done < most ? bytes - done : most, peer, tag));
    }
    return FSDP_OK;
}

fsdp_status fsdpi_post_broadcast(fsdpi_messages *messages, void *data, size_t bytes, int root)
{
    const size_t most = (size_t)messages->core->config.message_bytes;

    for (size_t done = 0; done < bytes; done += most) {
        const size_t piece = bytes - done < most ? bytes - done : most;
        MPI_Request *message;

        FSDP_TRY(fsdpi_next_message(messages, &message));
        FSDPI_TRY_MPI(messages->core->ctx,
                      MPI_Ibcast((unsigned char *)data + done, (int)piece, MPI_BYTE, root, messages->comm, message));
    }
    return FSDP_OK;
}

fsdp_status fsdpi_post_allreduce(fsdpi_messages *messages, void *data, MPI_Datatype type, MPI_Op op)
{
    MPI_Request *message;

    FSDP_TRY(fsdpi_next_message(messages, &message));
    FSDPI_TRY_MPI(messages->core->ctx, MPI_Iallreduce(MPI_IN_PLACE, data, 1, type, op, messages->comm, message));
    return FSDP_OK;
}

fsdp_status fsdpi_messages_cancel(fsdpi_messages *messages, size_t first, size_t n)
{
    for (size_t i = first; i < first + n; i++) {
        FSDPI_TRY_MPI(messages->core->ctx, MPI_Cancel(&messages->list[i]));
    }
    return FSDP_OK;
}

void fsdpi_messages_progress(const fsdpi_messages *messages)
{
    int any;

    (void)MPI_Iprobe(messages->core->rank, FSDPI_TAG_RECORDS, messages->comm, &any,
                     MPI_STATUS_IGNORE); /* no rank sends to itself */
}
