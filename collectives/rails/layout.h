/**
 * @file
 * The transfers of an operation across nodes: who sends which part to whom. See collectives/rails/rails.h.
 */
#ifndef FSDPI_RAILS_LAYOUT_H
#define FSDPI_RAILS_LAYOUT_H

#include "lib/node/nodes.h"
#include "lib/progress/queue.h"
#include "lib/sync/rails.h"

/** Fills in the context's transfers with this rank's; `route` are fsdpi_route. */
void fsdpi_rails_lay_out(fsdp_request *request, unsigned route);

/** The rank of a node that first has a part there. */
int fsdpi_rails_holder(const fsdpi_nodes *nodes, int node, int part);

/** A transfer by its row: sends come first, then receives. */
static inline fsdpi_transfer *fsdpi_rails_transfer(fsdpi_rails *rails, size_t row)
{
    return row < rails->n_sends ? &rails->sends[row] : &rails->receives[row - rails->n_sends];
}

/** The number of the message, and of the mark, of a chunk of a row. Behind the rows of transfers there are two more of marks. */
static inline size_t fsdpi_rails_message(size_t row, size_t number)
{
    return row * FSDPI_RAILS_DEPTH + number % FSDPI_RAILS_DEPTH;
}

static inline size_t fsdpi_rails_row_of_reductions(const fsdpi_rails *rails)
{
    return rails->n_sends + rails->n_receives;
}

static inline size_t fsdpi_rails_first_mark(const fsdpi_rails *rails)
{
    return fsdpi_rails_message(fsdpi_rails_row_of_reductions(rails) + 1, 0);
}

/** Whether MPI has a tag for each of the parts that one rank passes on to another in a ring. The same on all ranks. */
bool fsdpi_rails_can_go_around(const fsdp_context *ctx);

/** The tag of a part: another one for each part that one rank passes on to another in a ring; else it is one at a time. */
int fsdpi_rails_tag_of_part(const fsdp_context *ctx, int part);

#endif
