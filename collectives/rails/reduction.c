#include "collectives/rails/reduction.h"

#include "collectives/rails/chunks.h"
#include "collectives/rails/layout.h"
#include "collectives/rails/ops.h"
#include "collectives/rails/places.h"
#include "collectives/rails/route.h"
#include "collectives/rails/work.h"
#include "collectives/reach/mover.h"
#include "lib/context/context.h"

/* Chunks of this rank's own part of which all nodes' partial results are there, or will be when the work before is done. */
static size_t ready_to_reduce(const fsdpi_rails *rails)
{
    size_t ready = rails->chunks;

    for (size_t i = 0; i < rails->n_receives; i++) {
        if (rails->receives[i].partial && rails->receives[i].begun < ready) {
            ready = rails->receives[i].begun;
        }
    }
    return ready;
}

/* The next chunk of this rank's own part, over all nodes in their order. */
static fsdp_status reduce_chunk(fsdp_request *request)
{
    fsdp_context        *ctx   = request->ctx;
    fsdpi_rails         *rails = &ctx->rails;
    const fsdpi_slice    mine  = fsdpi_slice_of(request, ctx->rank);
    const fsdpi_slice    c     = fsdpi_rails_chunk_of(request, mine.begin, mine.count, rails->reducing);
    unsigned char *const own   = fsdpi_rails_own_place(request);

    FSDP_TRY(fsdpi_rails_compute_partial(request, c, own));
    ctx->operands[ctx->nodes.mine] = fsdpi_rails_partial(request, c, own);
    for (size_t i = 0; i < rails->n_receives; i++) {
        if (rails->receives[i].partial) {
            ctx->operands[ctx->nodes.node_of[rails->receives[i].peer]] =
                fsdpi_rails_place(request, &rails->receives[i], rails->reducing);
        }
    }
    fsdpi_mover_of(request)->reduce(request, fsdpi_own_result(request) + (c.begin - mine.begin) * request->call.width,
                                    (size_t)ctx->nodes.count, c.count, request->call.op, (size_t)ctx->size);
    return FSDP_OK;
}

static fsdp_status begin_reduction(fsdp_request *request, bool *moved)
{
    const fsdpi_rails_ops *ops   = fsdpi_rails_ops_of(request);
    fsdpi_rails           *rails = &request->ctx->rails;

    if (rails->reducing >= ready_to_reduce(rails)) {
        return FSDP_OK;
    }
    ops->turn(request, FSDPI_COMING);
    FSDP_TRY(reduce_chunk(request));
    (void)ops->mark(request, fsdpi_rails_message(fsdpi_rails_row_of_reductions(rails), rails->reducing));
    rails->reducing++;
    *moved = true;
    return FSDP_OK;
}

static void end_reductions(fsdp_request *request, unsigned route, bool *moved)
{
    const fsdpi_rails_ops *ops   = fsdpi_rails_ops_of(request);
    fsdp_context          *ctx   = request->ctx;
    fsdpi_rails           *rails = &ctx->rails;
    const size_t           row   = fsdpi_rails_row_of_reductions(rails);

    while (rails->reduced < rails->reducing && ops->is_past(request, fsdpi_rails_message(row, rails->reduced))) {
        rails->reduced++;
        *moved = true;
        if ((route & FSDPI_GATHERS) != 0) {
            fsdpi_rails_tell_landed(ctx, ctx->rank, rails->reduced);
        }
    }
}

fsdp_status fsdpi_rails_reduce(fsdp_request *request, unsigned route, bool *moved)
{
    if ((route & FSDPI_REDUCES) == 0) {
        return FSDP_OK;
    }
    if (*moved || !request->ctx->rails.is_still) {
        FSDP_TRY(begin_reduction(request, moved));
    }
    end_reductions(request, route, moved);
    return FSDP_OK;
}
