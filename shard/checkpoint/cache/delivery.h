/**
 * @file
 * The bytes of a cache on their way to the partner's node, in messages of one length that are posted a few at a time: both sides
 * post as many of them as they like, whenever they like.
 */
#ifndef FSDPI_CACHE_DELIVERY_H
#define FSDPI_CACHE_DELIVERY_H

#include <stdbool.h>

#include "lib/context/context.h"
#include "lib/sync/messages.h"
#include "shard/checkpoint/cache/cache_file.h"

enum { FSDPI_DELIVERY_MESSAGES = 256 }; /* at most, but for the head */

/** Zeros: nothing has been sent. */
typedef struct fsdpi_delivery {
    fsdp_context     *ctx;
    fsdpi_messages    messages;
    int               peer;
    bool              sends;
    unsigned char    *body; /* all but the head */
    size_t            bytes, piece;
    int               n, posted; /* messages of the body */
    bool              head_posted;
    fsdpi_cache_head *head; /* sent, or where it comes */
} fsdpi_delivery;

/** On `comm`, of what this rank sends to a peer, or has from it. Local. FSDP_ERR_MEMORY. */
fsdp_status fsdpi_delivery_open(fsdpi_delivery *delivery, fsdp_context *ctx, MPI_Comm comm, int peer, bool sends);

/** Where messages are under way, what they are kept in stays. Zeros are allowed. */
void   fsdpi_delivery_close(fsdpi_delivery *delivery);
size_t fsdpi_delivery_bookkeeping(const fsdpi_delivery *delivery);

/** Tells the peer a number, or has it told, once fsdpi_delivery_wait() returns. Nothing else is under way. */
fsdp_status fsdpi_delivery_tell(fsdpi_delivery *delivery, uint64_t *number);

/** Sets the delivery of what a file has behind its head. Nothing is posted yet. `head` stays where it is. */
void fsdpi_delivery_begin(fsdpi_delivery *delivery, const fsdpi_cache_file *file, fsdpi_cache_head *head);

/** Posts messages until as many BYTES of the body are. */
fsdp_status fsdpi_delivery_post(fsdpi_delivery *delivery, size_t bytes);

/** Posts the head, behind all of the body. */
fsdp_status fsdpi_delivery_post_head(fsdpi_delivery *delivery);

/** Whether all messages are complete; never waits. */
fsdp_status fsdpi_delivery_test(fsdpi_delivery *delivery, bool *complete);

/** Waits for all messages, which have been posted, for as long as FSDP_TIMEOUT_S. */
fsdp_status fsdpi_delivery_wait(fsdpi_delivery *delivery);

/** Whether there are messages that MPI has not completed: their memory is not to be released. */
bool fsdpi_delivery_is_under_way(const fsdpi_delivery *delivery);

#endif
