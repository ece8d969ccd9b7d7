/**
 * @file
 * Where the chunks of an operation across nodes lie: in the buffers of the call, or in staging memory.
 */
#ifndef FSDPI_RAILS_PLACES_H
#define FSDPI_RAILS_PLACES_H

#include "collectives/arguments/slices.h"
#include "lib/sync/rails.h"

/** The elements of a chunk of a transfer, and their BYTES. */
fsdpi_slice fsdpi_rails_chunk(const fsdp_request *request, const fsdpi_transfer *t, size_t number);
size_t      fsdpi_rails_chunk_bytes(const fsdp_request *request, const fsdpi_transfer *t, size_t number);

/** The place of a chunk in the staging memory that partial results are computed in; and in that of the host, for MPI. */
unsigned char *fsdpi_rails_place(const fsdp_request *request, const fsdpi_transfer *t, size_t number);
unsigned char *fsdpi_rails_staged(const fsdp_request *request, const fsdpi_transfer *t, size_t number);

/** The place for this rank's own partial result, which goes nowhere. */
unsigned char *fsdpi_rails_own_place(const fsdp_request *request);

/** Where the node's partial reduction of some elements is: in its place, or, on a node of one rank, in the input. */
const unsigned char *fsdpi_rails_partial(const fsdp_request *request, fsdpi_slice c, const unsigned char *in_place);

/** Where a chunk that is sent lies; and where one that is received belongs. */
const unsigned char *fsdpi_rails_sent(const fsdp_request *request, unsigned route, const fsdpi_transfer *t,
                                      size_t number);
unsigned char       *fsdpi_rails_received(const fsdp_request *request, const fsdpi_transfer *t, size_t number);

#endif
