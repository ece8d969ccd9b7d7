/* Reduce-scatter across nodes: see collectives/rails/rails.h. Each node sends and receives (M-1)/M S. */
#include "collectives/rails/rails.h"
#include "collectives/reach/pieces.h"
#include "collectives/reduce_scatter/reduce_scatter.h"

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    return fsdpi_rails_advance(request, FSDPI_REDUCES, progress);
}

const fsdpi_algorithm fsdpi_reduce_scatter_rails = {
    .name = "rails", .advance = advance, .end = fsdpi_settle, .awaited = fsdpi_rails_awaited, .leaves_together = true};
const fsdpi_algorithm fsdpi_reduce_scatter_rails_device = {
    .name = "rails", .advance = advance, .end = fsdpi_settle, .awaited = fsdpi_rails_awaited, .agrees_at_end = true};
