/**
 * @file
 * Where the chunks of an operation across nodes lie: in the buffers of the call, or in staging memory.
 */
#ifndef FSDPI_RAILS_PLACES_H
#define FSDPI_RAILS_PLACES_H

#include "collectives/arguments/slices.h"
#include "lib/sync/rails.h"

/** Its BYTES, and the n-th chunk of a stream, while it is kept. */
size_t        fsdpi_rails_bytes(const fsdp_request *request, const fsdpi_parcel *parcel);
fsdpi_parcel *fsdpi_rails_parcel(fsdp_request *request, fsdpi_stream_kind kind, size_t n);

/** The place of a chunk in the staging memory that partial results are computed in; and in that of the host, for MPI. */
unsigned char *fsdpi_rails_place(const fsdp_request *request, fsdpi_stream_kind kind, size_t n);
unsigned char *fsdpi_rails_staged(const fsdp_request *request, fsdpi_stream_kind kind, size_t n);

/**
 * Behind these, where chunks are reduced: the place of this rank's own partial result, that of the sum so far, and one for an
 * operand as wide as that.
 */
unsigned char *fsdpi_rails_own_place(const fsdp_request *request);
unsigned char *fsdpi_rails_sum_place(const fsdp_request *request);
unsigned char *fsdpi_rails_wide_place(const fsdp_request *request);

/** Where this rank's part of what the root collects is reduced: in the result at the root, in the operation's own memory elsewhere. */
unsigned char *fsdpi_rails_collected(const fsdp_request *request);

/** Where the node's partial reduction of some elements is: in its place, or, on a node of one rank, in the input. */
const unsigned char *fsdpi_rails_partial(const fsdp_request *request, fsdpi_slice c, const unsigned char *in_place);

/** Where a chunk that is sent lies; and where one that is received belongs. */
const unsigned char *fsdpi_rails_sent(const fsdp_request *request, fsdpi_stream_kind kind, size_t n);
unsigned char       *fsdpi_rails_received(const fsdp_request *request, fsdpi_stream_kind kind, size_t n);

#endif
