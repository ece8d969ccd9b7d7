/**
 * @file
 * The buffers of the peers on a node, on GPUs that reach each other's memory.
 */
#ifndef FSDPI_PEER_GPUS_H
#define FSDPI_PEER_GPUS_H

#include "lib/progress/queue.h"

/** Puts a copy from a peer's input, `offset` BYTES into it, into the operation's stream. */
void fsdpi_fetch_on_device(fsdp_request *request, int position, size_t offset, void *to, size_t bytes);

/** For fsdpi_algorithm::end: what comes next waits until no peer uses this rank's buffers any more. */
void fsdpi_leave_on_device(fsdp_request *request);

#endif
