#include "collectives/rails/work.h"

#include "collectives/rails/ops.h"
#include "collectives/rails/places.h"
#include "collectives/rails/route.h"
#include "collectives/reach/mover.h"
#include "collectives/reach/pieces.h"
#include "lib/context/context.h"

fsdp_status fsdpi_rails_compute_partial(fsdp_request *request, fsdpi_slice c, unsigned char *to)
{
    const fsdp_redop op = request->call.op == FSDP_AVG ? FSDP_SUM : request->call.op;

    return request->ctx->nodes.size > 1 ? fsdpi_reduce_inputs(request, c.begin, c.count, op, 1, to) : FSDP_OK;
}

static bool is_computed(const fsdp_request *request, fsdpi_stream_kind kind)
{
    return kind == FSDPI_PARTIALS_OUT && request->ctx->nodes.size > 1;
}

bool fsdpi_rails_is_work_to_send(const fsdp_request *request, fsdpi_stream_kind kind)
{
    return fsdpi_rails_ops_of(request)->stages(request) || is_computed(request, kind);
}

/* The oldest work on a stream is done. Of what has come, only partial results are still needed, until they are reduced. */
static void end_work(fsdpi_rails *rails, fsdpi_stream_kind kind)
{
    rails->streams[kind].ended++;
    rails->streams[kind].released += kind == FSDPI_PARTS_IN;
}

/* All work on the next chunk has been begun; `any`: there was some. */
static void begin_work(fsdp_request *request, fsdpi_stream_kind kind, bool any)
{
    fsdpi_rails  *rails  = &request->ctx->rails;
    fsdpi_stream *stream = &rails->streams[kind];

    const bool ends_later =
        any && fsdpi_rails_ops_of(request)->mark(request, fsdpi_rails_number(rails, kind, stream->begun));
    stream->begun++;
    if (ends_later) {
        rails->n_working++;
    } else {
        end_work(rails, kind);
    }
}

fsdp_status fsdpi_rails_begin_send(fsdp_request *request, fsdpi_stream_kind kind)
{
    const fsdpi_rails_ops *ops    = fsdpi_rails_ops_of(request);
    const fsdpi_mover     *mover  = fsdpi_mover_of(request);
    const size_t           n      = request->ctx->rails.streams[kind].begun;
    const fsdpi_parcel    *parcel = fsdpi_rails_parcel(request, kind, n);
    const fsdpi_slice      c      = {parcel->begin, parcel->count};

    ops->turn(request, FSDPI_LEAVING);
    if (is_computed(request, kind)) {
        FSDP_TRY(fsdpi_rails_compute_partial(request, c, fsdpi_rails_place(request, kind, n)));
    }
    if (ops->stages(request)) {
        mover->move(request, mover->in_mailbox(request, fsdpi_rails_staged(request, kind, n)),
                    fsdpi_rails_sent(request, kind, n), fsdpi_rails_bytes(request, parcel));
    }
    begin_work(request, kind, fsdpi_rails_is_work_to_send(request, kind));
    return FSDP_OK;
}

void fsdpi_rails_begin_arrival(fsdp_request *request, fsdpi_stream_kind kind)
{
    const fsdpi_rails_ops *ops    = fsdpi_rails_ops_of(request);
    const fsdpi_mover     *mover  = fsdpi_mover_of(request);
    const size_t           n      = request->ctx->rails.streams[kind].begun;
    const bool             stages = ops->stages(request);

    ops->turn(request, FSDPI_COMING);
    if (stages) {
        mover->move(request, fsdpi_rails_received(request, kind, n),
                    mover->in_mailbox(request, fsdpi_rails_staged(request, kind, n)),
                    fsdpi_rails_bytes(request, fsdpi_rails_parcel(request, kind, n)));
    }
    begin_work(request, kind, stages);
}

void fsdpi_rails_look_at_marks(fsdp_request *request, bool *moved)
{
    const fsdpi_rails_ops *ops   = fsdpi_rails_ops_of(request);
    fsdpi_rails           *rails = &request->ctx->rails;

    for (int s = 0; rails->n_working > 0 && s < FSDPI_STREAMS; s++) {
        const fsdpi_stream_kind kind   = (fsdpi_stream_kind)s;
        const fsdpi_stream     *stream = &rails->streams[s];

        while (stream->ended < stream->begun && ops->is_past(request, fsdpi_rails_number(rails, kind, stream->ended))) {
            end_work(rails, kind);
            rails->n_working--;
            *moved = true;
        }
    }
}

void fsdpi_rails_tell_come(fsdp_request *request)
{
    fsdp_context *ctx  = request->ctx;
    const size_t  come = ctx->rails.streams[FSDPI_PARTS_IN].ended;

    /* What is exchanged or collected is its receiver's alone. */
    if (come > ctx->rails.told && ctx->nodes.size > 1 && (ctx->rails.route & FSDPI_GATHERS) != 0) {
        ctx->rails.told = come;
        fsdpi_mailbox_set_landed(&request->lane->box, FSDPI_LANDED_HERE, come);
    }
}
