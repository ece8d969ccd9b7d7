/**
 * @file
 * How large the chunks are that parts travel in between nodes: the same on all ranks.
 */
#ifndef FSDPI_RAILS_CHUNKS_H
#define FSDPI_RAILS_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>

#include "collectives/arguments/slices.h"

/** BYTES of a chunk on the host: enough to be worth a message, few enough that the link never waits long for the first one. */
enum { FSDPI_HOST_CHUNK_BYTES = 48 << 10 };

/** Sets the window and the chunk of an operation; `route` are fsdpi_route. */
void fsdpi_rails_size_chunks(fsdp_request *request, unsigned route);

/** How many chunks so many ELEMENTS are. */
size_t fsdpi_rails_chunks(const fsdp_request *request, size_t count);

/** The elements of a chunk of a part that begins at `begin` and has `count`. */
fsdpi_slice fsdpi_rails_chunk_of(const fsdp_request *request, size_t begin, size_t count, size_t number);

/** Whether staging memory has room for a chunk of one element, of any type, of every transfer that a rank may have where
 *  messages go through it. */
bool fsdpi_rails_fit(const fsdp_context *ctx);

#endif
