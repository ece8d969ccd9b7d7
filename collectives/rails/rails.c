#include "collectives/rails/rails.h"

#include "collectives/rails/copies.h"
#include "collectives/rails/layout.h"
#include "collectives/rails/messages.h"
#include "collectives/rails/ops.h"
#include "collectives/rails/reduction.h"
#include "collectives/rails/work.h"
#include "lib/context/context.h"

enum { LAY_OUT, START, STARTED };

static bool is_over(const fsdpi_rails *rails, unsigned route)
{
    for (size_t i = 0; i < rails->n_sends; i++) {
        if (rails->sends[i].done < rails->sends[i].chunks) {
            return false;
        }
    }
    for (size_t i = 0; i < rails->n_receives; i++) {
        if (rails->receives[i].ended < rails->receives[i].chunks) {
            return false;
        }
    }
    return (route & FSDPI_REDUCES) == 0 || rails->reduced == rails->chunks;
}

/* `stage` says how far an operation is. False while it waits to be started. */
static bool begin(fsdp_request *request, unsigned route)
{
    const fsdpi_rails_ops *ops   = fsdpi_rails_ops_of(request);
    fsdpi_rails           *rails = &request->ctx->rails;

    if (request->stage == LAY_OUT) {
        fsdpi_rails_lay_out(request, route);
        ops->start(request, fsdpi_rails_first_mark(rails));
        request->stage = START;
    }
    if (request->stage == START && ops->has_started(request, fsdpi_rails_first_mark(rails))) {
        request->stage = STARTED;
    }
    return request->stage == STARTED;
}

fsdp_status fsdpi_rails_advance(fsdp_request *request, unsigned route, fsdpi_progress *progress)
{
    fsdpi_rails *rails = &request->ctx->rails;
    bool         moved = false, copied = true;

    *progress = FSDPI_WAITING;
    if (!begin(request, route)) {
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_rails_look_at_messages(request, &moved));
    fsdpi_rails_look_at_marks(request, &moved);
    if (moved || !rails->is_still) { /* else there is nothing new to be done for any transfer */
        FSDP_TRY(fsdpi_rails_post_receives(request, &moved));
        FSDP_TRY(fsdpi_rails_post_sends(request, route, &moved));
    }
    FSDP_TRY(fsdpi_rails_reduce(request, route, &moved));
    fsdpi_rails_copy_own_part(request, route, &moved, &copied);
    FSDP_TRY(fsdpi_rails_copy_from_peers(request, route, &moved, &copied));
    rails->is_still = !moved;
    if (moved) {
        *progress = FSDPI_MOVED;
    } else if (copied && is_over(rails, route) && fsdpi_rails_ops_of(request)->is_at_rest(request)) {
        *progress = FSDPI_FINISHED;
    }
    return FSDP_OK;
}
