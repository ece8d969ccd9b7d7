/* Allreduce across nodes: see collectives/rails/rails.h. Each node sends and receives 2 (M-1)/M S. */
#include "collectives/rails/rails.h"
#include "collectives/allreduce/allreduce.h"

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    return fsdpi_rails_advance(request, FSDPI_REDUCES | FSDPI_GATHERS, progress);
}

const fsdpi_algorithm fsdpi_allreduce_rails = {
    .name = "rails", .advance = advance, .awaited = fsdpi_rails_awaited, .leaves_together = true};
const fsdpi_algorithm fsdpi_allreduce_rails_device = {
    .name = "rails", .advance = advance, .awaited = fsdpi_rails_awaited, .agrees_at_end = true};
