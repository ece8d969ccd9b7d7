/**
 * @file
 * The transfers of an operation across nodes: who sends which part to whom, and in how large chunks. See collectives/rails.h.
 */
#ifndef FSDPI_COLLECTIVES_RAILS_LAYOUT_H
#define FSDPI_COLLECTIVES_RAILS_LAYOUT_H

#include "collectives/arguments.h"
#include "lib/nodes.h"
#include "lib/queue.h"

/** Fills in the context's transfers with this rank's; `route` are fsdpi_route. */
void fsdpi_rails_lay_out(fsdp_request *request, unsigned route);

/** Whether staging memory has room for a chunk of one element, of any type, of every transfer that a rank may have on GPUs. */
bool fsdpi_rails_fit(const fsdp_context *ctx);

/** The rank of a node that first has a part there. */
int fsdpi_rails_holder(const fsdpi_nodes *nodes, int node, int part);

/** Whether messages go through staging memory of the host, since MPI does not take that of the GPU. */
bool fsdpi_rails_stages(const fsdp_request *request);

/** How many chunks so many ELEMENTS are. */
size_t fsdpi_rails_chunks(const fsdp_request *request, size_t count);

/** The elements of a chunk of a part that begins at `begin` and has `count`. */
fsdpi_slice fsdpi_rails_chunk_of(const fsdp_request *request, size_t begin, size_t count, size_t number);

#endif
