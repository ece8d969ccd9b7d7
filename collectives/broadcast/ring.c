/*
 * Broadcast across nodes: an allgather around the ring of nodes in which the whole vector is the root's part, see
 * collectives/rails/rails.h. Each node but the last receives S and passes it on at the same time.
 * Cost for S bytes on M nodes: S over each link, and M-2 chunks until the last node has all.
 */
#include "collectives/broadcast/broadcast.h"
#include "collectives/rails/rails.h"

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    return fsdpi_rails_advance(request, FSDPI_GATHERS | FSDPI_AROUND, progress);
}

const fsdpi_algorithm fsdpi_broadcast_ring = {
    .name = "ring", .advance = advance, .awaited = fsdpi_rails_awaited, .leaves_together = true};
const fsdpi_algorithm fsdpi_broadcast_ring_device = {
    .name = "ring", .advance = advance, .awaited = fsdpi_rails_awaited, .agrees_at_end = true};
