/**
 * @file
 * Reductions over the inputs of a node's ranks, a piece at a time: pieces stay in the cache, and what has to be copied from
 * peers fits into staging memory.
 */
#ifndef FSDPI_PIECES_H
#define FSDPI_PIECES_H

#include "collectives/arguments/slices.h"
#include "lib/progress/queue.h"

/** ELEMENTS of a piece, at most. The same on all ranks. */
size_t fsdpi_piece(const fsdp_request *request);

/**
 * The next piece of a part of which request->at elements are done. Every other call goes from the end to the beginning:
 * what was touched last is in the cache, and would be gone when a walk from the beginning came to it.
 */
fsdpi_slice fsdpi_next_piece(const fsdp_request *request, fsdpi_slice part, size_t most);

/**
 * Reduces elements [begin, begin + count) of the inputs of all ranks of the node, in rank order. count <= fsdpi_piece().
 */
fsdp_status fsdpi_reduce_inputs(fsdp_request *request, size_t begin, size_t count, fsdp_redop op, size_t divisor,
                                unsigned char *to);

/** The same on the host into several outputs, past the caches where that pays. No output is written before its input has
 *  been read. */
fsdp_status fsdpi_reduce_inputs_to(fsdp_request *request, size_t begin, size_t count, unsigned char *const *to,
                                   int n_to);

/** One step, on the host, of reducing this rank's own part into fsdpi_own_result(); request->at counts its elements. */
fsdp_status fsdpi_reduce_own_part(fsdp_request *request, bool *done);

/** For fsdpi_algorithm::end: moves that part to the output, if it is elsewhere. */
void fsdpi_settle(fsdp_request *request);

#endif
