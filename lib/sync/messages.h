/**
 * @file
 * The messages of the operation at the head of a lane: posted one by one, completed together.
 */
#ifndef FSDPI_MESSAGES_H
#define FSDPI_MESSAGES_H

#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/core.h"
#include "lib/base/error.h"

/**
 * What messages on a lane's communicator are for; between two ranks, those of one tag keep their order. From the last one on, and
 * from half of messages->first_bare_tag on: see lib/sync/bare_tags.h.
 */
enum {
    FSDPI_TAG_RECORDS = 1,
    FSDPI_TAG_BLOCKS,
    FSDPI_TAG_PARTIALS,
    FSDPI_TAG_NOTES,
    FSDPI_TAG_PARTS,
    FSDPI_TAG_PORTIONS = 16
};

/** Data of up to `until` BYTES travels in messages of up to `piece`. */
typedef struct fsdpi_cut {
    size_t piece, until;
} fsdpi_cut;

/**
 * Whether a test of messages lets MPI go on even if they are complete: one test of several is then better than several tests. In
 * MPICH, that of a message that has left took 720 instructions, a fifth of a short allgather. Open MPI's MPI_Testall() says what it
 * has found before it let MPI go on; MPI_Test() looks again afterwards.
 */
#ifdef OPEN_MPI
enum { FSDPI_EVERY_TEST_MOVES = false };
#else
enum { FSDPI_EVERY_TEST_MOVES = true };
#endif

typedef struct fsdpi_messages {
    fsdpi_core  *core;
    MPI_Comm     comm;           /* that they are sent on */
    int          largest_tag;    /* there */
    int          first_bare_tag; /* a power of two: there are as many from it on */
    fsdpi_cut    cut;            /* of data; {0}: none */
    MPI_Request *list;
    size_t       n, capacity;
} fsdpi_messages;

/** On `comm`, which is its owner's. */
fsdp_status fsdpi_messages_open(fsdpi_messages *messages, fsdpi_core *core, MPI_Comm comm);
void        fsdpi_messages_close(fsdpi_messages *messages);
size_t      fsdpi_messages_bookkeeping(void);

/** Whether data of so many BYTES is not cut. */
bool fsdpi_is_one_message(const fsdpi_messages *messages, size_t bytes);

/** Cut into pieces as the link and config.message_bytes say; 0 bytes are no message. */
fsdp_status fsdpi_post_send(fsdpi_messages *messages, const void *data, size_t bytes, int peer, int tag);
fsdp_status fsdpi_post_receive(fsdpi_messages *messages, void *data, size_t bytes, int peer, int tag);
fsdp_status fsdpi_post_broadcast(fsdpi_messages *messages, void *data, size_t bytes, int root);

/** Makes room for another message in the list. Where it cannot, the context is broken. */
fsdp_status fsdpi_messages_make_room(fsdpi_messages *messages);

/** The place of the next one in the list, for MPI to write its request to. */
static inline fsdp_status fsdpi_next_message(fsdpi_messages *messages, MPI_Request **message)
{
    if (messages->n == messages->capacity) {
        FSDP_TRY(fsdpi_messages_make_room(messages));
    }
    *message  = &messages->list[messages->n++];
    **message = MPI_REQUEST_NULL;
    return FSDP_OK;
}

/** One message of up to INT_MAX BYTES. */
static inline fsdp_status fsdpi_post_send_whole(fsdpi_messages *messages, const void *data, size_t bytes, int peer,
                                                int tag)
{
    MPI_Request *message;

    FSDP_TRY(fsdpi_next_message(messages, &message));
    FSDPI_TRY_MPI(messages->core->ctx, MPI_Isend(data, (int)bytes, MPI_BYTE, peer, tag, messages->comm, message));
    return FSDP_OK;
}

/** Starts a persistent request, which is completed with the other messages and stays its owner's. */
static inline fsdp_status fsdpi_post_kept(fsdpi_messages *messages, MPI_Request *kept)
{
    MPI_Request *message;

    FSDP_TRY(fsdpi_next_message(messages, &message));
    FSDPI_TRY_MPI(messages->core->ctx, MPI_Start(kept));
    *message = *kept;
    return FSDP_OK;
}

/** The receiver only knows how many BYTES it can be at most. */
static inline fsdp_status fsdpi_post_receive_whole(fsdpi_messages *messages, void *data, size_t most, int peer, int tag)
{
    MPI_Request *message;

    FSDP_TRY(fsdpi_next_message(messages, &message));
    FSDPI_TRY_MPI(messages->core->ctx,
                  MPI_Irecv(data, most < INT_MAX ? (int)most : INT_MAX, MPI_BYTE, peer, tag, messages->comm, message));
    return FSDP_OK;
}

/** Reduces one item of a type over all ranks, in place. */
fsdp_status fsdpi_post_allreduce(fsdpi_messages *messages, void *data, MPI_Datatype type, MPI_Op op);

/** Whether `n` of them, from one on, are complete. They are not forgotten. */
static inline fsdp_status fsdpi_messages_some_complete(fsdpi_messages *messages, size_t first, size_t n, bool *complete)
{
    MPI_Request *list = messages->list + first;
    int          all  = 1;

    if (n == 1) {
        FSDPI_TRY_MPI(messages->core->ctx, MPI_Test(list, &all, MPI_STATUS_IGNORE));
    } else if (n > 1) {
        FSDPI_TRY_MPI(messages->core->ctx, MPI_Testall((int)n, list, &all, MPI_STATUSES_IGNORE));
    }
    *complete = all != 0;
    return FSDP_OK;
}

/** The same for `n` that are received and have a sender, with what MPI knows of each of them once they are complete. */
static inline fsdp_status fsdpi_messages_received(fsdpi_messages *messages, size_t first, size_t n,
                                                  MPI_Status *statuses, bool *complete)
{
    MPI_Request *list = messages->list + first;
    int          all  = 0;

    FSDPI_TRY_MPI(messages->core->ctx,
                  n == 1 ? MPI_Test(list, &all, statuses) : MPI_Testall((int)n, list, &all, statuses));
    *complete = all != 0;
    return FSDP_OK;
}

/** Takes back `n` that are received and have no sender, from one on. They are complete then. */
fsdp_status fsdpi_messages_cancel(fsdpi_messages *messages, size_t first, size_t n);

/** Whether all of them are complete, and if so forgets them. */
static inline fsdp_status fsdpi_messages_complete(fsdpi_messages *messages, bool *complete)
{
    bool all = false;

    FSDP_TRY(fsdpi_messages_some_complete(messages, 0, messages->n, &all));
    messages->n = all ? 0 : messages->n;
    *complete   = all;
    return FSDP_OK;
}

/**
 * For who waits, but not for a message: lets MPI go on with what it owes peers, which may need it before they come to where
 * they are waited for. That is the rest of messages which are complete here, and messages of the caller's own; Open MPI and
 * MPICH move both in calls only.
 */
void fsdpi_messages_progress(const fsdpi_messages *messages);

#endif
