#include "collectives/rails/work.h"

#include "collectives/rails/layout.h"
#include "collectives/rails/ops.h"
#include "collectives/rails/places.h"
#include "collectives/reach/mover.h"
#include "collectives/reach/pieces.h"
#include "lib/context/context.h"

fsdp_status fsdpi_rails_compute_partial(fsdp_request *request, fsdpi_slice c, unsigned char *to)
{
    const fsdp_redop op = request->call.op == FSDP_AVG ? FSDP_SUM : request->call.op;

    return request->ctx->nodes.size > 1 ? fsdpi_reduce_inputs(request, c.begin, c.count, op, 1, to) : FSDP_OK;
}

void fsdpi_rails_tell_landed(fsdp_context *ctx, int part, size_t chunks)
{
    if (ctx->nodes.size > 1 && ctx->rails.window == 0) { /* blocks of an alltoall are their receiver's alone */
        fsdpi_mailbox_set_landed(&ctx->box, part, chunks);
    }
}

static void end_work(fsdp_context *ctx, size_t row)
{
    fsdpi_transfer *t = fsdpi_rails_transfer(&ctx->rails, row);

    t->ended++;
    if (row >= ctx->rails.n_sends && !t->partial) {
        fsdpi_rails_tell_landed(ctx, t->part, t->ended);
    }
}

/* All work on a chunk has been begun; `any`: there was some. */
static void begin_work(fsdp_request *request, size_t row, bool any)
{
    fsdpi_transfer *t = fsdpi_rails_transfer(&request->ctx->rails, row);

    const bool ends_later = any && fsdpi_rails_ops_of(request)->mark(request, fsdpi_rails_message(row, t->begun));
    t->begun++;
    if (ends_later) {
        request->ctx->rails.n_working++;
    } else {
        end_work(request->ctx, row);
    }
}

fsdp_status fsdpi_rails_begin_send(fsdp_request *request, unsigned route, size_t row)
{
    const fsdpi_rails_ops *ops      = fsdpi_rails_ops_of(request);
    const fsdpi_mover     *mover    = fsdpi_mover_of(request);
    const fsdpi_transfer  *t        = &request->ctx->rails.sends[row];
    const fsdpi_slice      c        = fsdpi_rails_chunk(request, t, t->begun);
    const bool             stages   = ops->stages(request);
    const bool             computes = t->partial && request->ctx->nodes.size > 1;

    ops->turn(request, FSDPI_LEAVING);
    if (computes) {
        FSDP_TRY(fsdpi_rails_compute_partial(request, c, fsdpi_rails_place(request, t, t->begun)));
    }
    if (stages) {
        mover->move(request, mover->in_mailbox(request, fsdpi_rails_staged(request, t, t->begun)),
                    fsdpi_rails_sent(request, route, t, t->begun), c.count * request->call.width);
    }
    begin_work(request, row, stages || computes);
    return FSDP_OK;
}

void fsdpi_rails_begin_arrival(fsdp_request *request, size_t row)
{
    const fsdpi_rails_ops *ops    = fsdpi_rails_ops_of(request);
    const fsdpi_mover     *mover  = fsdpi_mover_of(request);
    const fsdpi_transfer  *t      = fsdpi_rails_transfer(&request->ctx->rails, row);
    const bool             stages = ops->stages(request);

    ops->turn(request, FSDPI_COMING);
    if (stages) {
        mover->move(request, fsdpi_rails_received(request, t, t->begun),
                    mover->in_mailbox(request, fsdpi_rails_staged(request, t, t->begun)),
                    fsdpi_rails_chunk(request, t, t->begun).count * request->call.width);
    }
    begin_work(request, row, stages);
}

void fsdpi_rails_look_at_marks(fsdp_request *request, bool *moved)
{
    const fsdpi_rails_ops *ops   = fsdpi_rails_ops_of(request);
    fsdpi_rails           *rails = &request->ctx->rails;

    for (size_t row = 0; rails->n_working > 0 && row < rails->n_sends + rails->n_receives; row++) {
        const fsdpi_transfer *t = fsdpi_rails_transfer(rails, row);

        while (t->ended < t->begun && ops->is_past(request, fsdpi_rails_message(row, t->ended))) {
            end_work(request->ctx, row);
            rails->n_working--;
            *moved = true;
        }
    }
}
