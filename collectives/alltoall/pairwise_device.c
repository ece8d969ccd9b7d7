/*
 * Alltoall on GPUs across nodes: every block goes from its rank to its rank in chunks, see collectives/rails/rails.h. In place the
 * input is first copied to the host.
 * Cost for S bytes on N ranks: (N-1)/N S beta, and in place S over the link to the host and back.
 */
#include "collectives/alltoall/alltoall.h"
#include "collectives/rails/rails.h"
#include "collectives/reach/mover.h"

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    if (request->stage == 0 && request->scratch != NULL) {
        fsdpi_device_mover.move(request, request->scratch, request->call.in, request->scratch_bytes);
    }
    return fsdpi_rails_advance(request, FSDPI_EXCHANGES, progress);
}

const fsdpi_algorithm fsdpi_alltoall_pairwise_device = {
    .name = "pairwise", .advance = advance, .awaited = fsdpi_rails_awaited, .agrees_at_end = true};
