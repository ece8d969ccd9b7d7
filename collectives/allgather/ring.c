/*
 * Allgather around the ring of nodes, see collectives/rails/rails.h: each node receives every part from the node before it,
 * and passes it on to the next. Each receives (M-1)/M S, as by rails, from one neighbour alone.
 */
#include "collectives/allgather/allgather.h"
#include "collectives/rails/rails.h"

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    return fsdpi_rails_advance(request, FSDPI_GATHERS | FSDPI_AROUND, progress);
}

const fsdpi_algorithm fsdpi_allgather_ring = {
    .name = "ring", .advance = advance, .awaited = fsdpi_rails_awaited, .leaves_together = true};
const fsdpi_algorithm fsdpi_allgather_ring_device = {
    .name = "ring", .advance = advance, .awaited = fsdpi_rails_awaited, .agrees_at_end = true};
