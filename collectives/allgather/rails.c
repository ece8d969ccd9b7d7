/* Allgather across nodes: see collectives/rails.h. Each node receives (M-1)/M S, straight into its ranks' results. */
#include "collectives/rails.h"
#include "collectives/allgather/allgather.h"

static fsdp_status advance_rails(fsdp_request *request, fsdpi_progress *progress)
{
    return fsdpi_rails_advance(request, FSDPI_GATHERS, progress);
}

static fsdp_status advance_ring(fsdp_request *request, fsdpi_progress *progress)
{
    return fsdpi_rails_advance(request, FSDPI_GATHERS | FSDPI_AROUND, progress);
}

const fsdpi_algorithm fsdpi_allgather_rails = {
    .name = "rails", .advance = advance_rails, .end = fsdpi_rails_end, .leaves_together = true};
const fsdpi_algorithm fsdpi_allgather_ring = {
    .name = "ring", .advance = advance_ring, .end = fsdpi_rails_end, .leaves_together = true};
const fsdpi_algorithm fsdpi_allgather_rails_device = {
    .name = "rails", .advance = advance_rails, .end = fsdpi_rails_end, .agrees_at_end = true};
const fsdpi_algorithm fsdpi_allgather_ring_device = {
    .name = "ring", .advance = advance_ring, .end = fsdpi_rails_end, .agrees_at_end = true};
