/**
 * @file
 * The buffers of the peers on a node: addressed where they are symmetric, copied from where they are not.
 */
#ifndef FSDPI_REACH_H
#define FSDPI_REACH_H

#include <stdbool.h>

#include "lib/progress/queue.h"
#include "lib/sync/mailbox.h"

typedef enum fsdpi_side { FSDPI_INPUT, FSDPI_OUTPUT } fsdpi_side;

/** For fsdpi_collective::offer: says in the letter where this rank's buffers are, and returns what holds of them. */
unsigned fsdpi_offer_places(fsdp_request *request, fsdpi_letter *letter);

/** Whether peers can read this rank's buffers, as they are in the letter, where these are not symmetric. */
bool fsdpi_places_are_open(fsdp_request *request, const fsdpi_letter *letter);

/** Where this rank sees a peer's buffer; NULL where that is not symmetric. This rank's own it always sees. */
unsigned char *fsdpi_peer(const fsdp_request *request, int position, fsdpi_side side);

/** Copies from a peer's buffer, `offset` BYTES into it. */
fsdp_status fsdpi_fetch(fsdp_request *request, int position, fsdpi_side side, size_t offset, void *to, size_t bytes);

#endif
