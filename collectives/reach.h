/**
 * @file
 * The buffers of the peers on a node: addressed where they are symmetric, copied from where they are not.
 */
#ifndef FSDPI_REACH_H
#define FSDPI_REACH_H

#include "collectives/arguments.h"
#include "lib/mailbox.h"
#include "lib/queue.h"

typedef enum fsdpi_side { FSDPI_INPUT, FSDPI_OUTPUT } fsdpi_side;

/** For fsdpi_collective::offer: says in the letter where this rank's buffers are, and returns what holds of them. */
unsigned fsdpi_offer_places(fsdp_request *request, fsdpi_letter *letter);

/** The algorithms that could serve a call with these flags, a bit each. */
unsigned fsdpi_able(const fsdp_request *request);

/** Where this rank sees a peer's buffer; NULL where that is not symmetric. This rank's own it always sees. */
unsigned char *fsdpi_peer(const fsdp_request *request, int position, fsdpi_side side);

/** Copies from a peer's buffer, `offset` BYTES into it. */
fsdp_status fsdpi_fetch(fsdp_request *request, int position, fsdpi_side side, size_t offset, void *to, size_t bytes);

/** The same on GPUs: puts the copy from a peer's input into the operation's stream. */
void fsdpi_fetch_on_device(fsdp_request *request, int position, size_t offset, void *to, size_t bytes);

/** For fsdpi_algorithm::end, on GPUs: what comes next waits until no peer uses this rank's buffers any more. */
void fsdpi_leave_on_device(fsdp_request *request);

/** ELEMENTS that one step should work on: they stay in the cache, and what has to be copied fits into staging memory. The
 *  same on all ranks. */
size_t fsdpi_piece(const fsdp_request *request);

/** Reduces the first `n` of ctx->operands: on GPUs in the stream, else at once. */
void fsdpi_reduce_operands(fsdp_request *request, void *to, size_t n, size_t count, fsdp_redop op, size_t divisor);

/**
 * Reduces elements [begin, begin + count) of the inputs of all ranks of the node, in rank order. count <= fsdpi_piece().
 */
fsdp_status fsdpi_reduce_inputs(fsdp_request *request, size_t begin, size_t count, fsdp_redop op, size_t divisor,
                                unsigned char *to);

/** The same into several outputs, past the caches where that pays. No output is written before its input has been read. */
fsdp_status fsdpi_reduce_inputs_to(fsdp_request *request, size_t begin, size_t count, unsigned char *const *to,
                                   int n_to);

/** One step of reducing this rank's own part of the vector into fsdpi_own_result(); request->at counts its elements. */
fsdp_status fsdpi_reduce_own_part(fsdp_request *request, bool *done);

/**
 * The next piece of a part of which request->at elements are done. Every other call goes from the end to the beginning:
 * what was touched last is in the cache, and would be gone when a walk from the beginning came to it.
 */
fsdpi_slice fsdpi_next_piece(const fsdp_request *request, fsdpi_slice part, size_t most);

/** Whether a call moves so much that its results should not go through the caches. */
bool fsdpi_is_large(const fsdp_request *request);

/** Copies: on GPUs in the stream, else past the caches where the call is large. To where it already is: nothing. */
void fsdpi_copy(fsdp_request *request, void *to, const void *from, size_t bytes);

#endif
