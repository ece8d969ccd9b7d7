/* Allgather across nodes: see collectives/rails/rails.h. Each node receives (M-1)/M S, straight into its ranks' results. */
#include "collectives/rails/rails.h"
#include "collectives/allgather/allgather.h"

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    return fsdpi_rails_advance(request, FSDPI_GATHERS, progress);
}

const fsdpi_algorithm fsdpi_allgather_rails = {
    .name = "rails", .advance = advance, .awaited = fsdpi_rails_awaited, .leaves_together = true};
const fsdpi_algorithm fsdpi_allgather_rails_device = {
    .name = "rails", .advance = advance, .awaited = fsdpi_rails_awaited, .agrees_at_end = true};
