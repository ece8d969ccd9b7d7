/**
 * @file
 * How large the chunks are that parts travel in between nodes, and how many of them are under way at once: the same on all
 * ranks.
 */
#ifndef FSDPI_RAILS_CHUNKS_H
#define FSDPI_RAILS_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>

#include "collectives/arguments/slices.h"

/** BYTES of a chunk on the host: enough to be worth a message, few enough that the link never waits long for the first one. */
enum { FSDPI_HOST_CHUNK_BYTES = 48 << 10 };

/** Sets the chunk, the windows and the places in staging memory of an operation; `route` are fsdpi_route. */
void fsdpi_rails_size_chunks(fsdp_request *request, unsigned route);

/** Whether MPI brings a long message of this operation on this rank's own core, in the call that asks for it: fsdpi_link. */
bool fsdpi_rails_pulls(const fsdp_request *request);

/** BYTES of the vector where it is all that two nodes have to do with each other; SIZE_MAX: between more. */
size_t fsdpi_rails_vector(const fsdp_request *request);

/**
 * Whether the sum of some nodes is kept in another type than the elements have: of 16-bit elements in f32. And how many places a
 * reduction takes behind those of the streams: one for this rank's own partial result, one for the sum, and if that is wide a
 * second one, and two for an operand as wide.
 */
bool   fsdpi_rails_is_wide(const fsdp_request *request);
size_t fsdpi_rails_spare_places(const fsdp_request *request);

/** How many chunks so many ELEMENTS are. */
size_t fsdpi_rails_chunks(const fsdp_request *request, size_t count);

/** The elements of a chunk of a part that begins at `begin` and has `count`. */
fsdpi_slice fsdpi_rails_chunk_of(const fsdp_request *request, size_t begin, size_t count, size_t number);

#endif
