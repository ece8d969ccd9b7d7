/*
 * Allreduce across nodes: see collectives/rails/rails.h. Each node sends and receives 2 (M-1)/M S. Two ranks may each send all they
 * have instead, which is as much, and both reduce it.
 */
#include "collectives/rails/rails.h"
#include "collectives/allreduce/allreduce.h"
#include "collectives/select/select_algorithm.h"
#include "lib/context/context.h"

static bool sends_all(const fsdp_request *request)
{
    return request->ctx->size == 2 &&
           request->call.count * request->call.width <=
               fsdpi_link_whole(&request->ctx->link, (request->flags & FSDPI_FLAG_AGAIN) != 0);
}

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    FSDP_TRY(
        fsdpi_rails_advance(request, FSDPI_REDUCES | (sends_all(request) ? FSDPI_WHOLE : FSDPI_GATHERS), progress));
    if (*progress == FSDPI_FINISHED) {
        fsdpi_select_remember(request);
    }
    return FSDP_OK;
}

const fsdpi_algorithm fsdpi_allreduce_rails = {
    .name = "rails", .advance = advance, .awaited = fsdpi_rails_awaited, .leaves_together = true};
const fsdpi_algorithm fsdpi_allreduce_rails_device = {
    .name = "rails", .advance = advance, .awaited = fsdpi_rails_awaited, .agrees_at_end = true};
