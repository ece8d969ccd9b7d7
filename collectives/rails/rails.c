#include "collectives/rails/rails.h"

#include <string.h>

#include "collectives/rails/chunks.h"
#include "collectives/rails/copies.h"
#include "collectives/rails/messages.h"
#include "collectives/rails/ops.h"
#include "collectives/rails/reduction.h"
#include "collectives/rails/schedule.h"
#include "collectives/rails/work.h"
#include "lib/context/context.h"
#include "lib/device/memory.h"

enum { LAY_OUT, START, STARTED };

/*
 * Where each rank's part begins, if the caller gives their lengths one by one: found once instead of at every chunk. Without
 * memory for it, at every chunk.
 */
static void find_parts(fsdp_request *request)
{
    const size_t bytes = (size_t)request->ctx->size * sizeof(size_t);

    if (request->call.division != FSDPI_DIVISION_COUNTS || request->call.counts == NULL || request->scratch != NULL) {
        return;
    }
    size_t *begins = fsdpi_alloc(request->ctx, FSDP_MEMORY_STAGING, bytes);
    if (begins == NULL) {
        return;
    }
    request->scratch       = (unsigned char *)begins;
    request->scratch_bytes = bytes;
    for (int r = 0; r < request->ctx->size; r++) {
        begins[r] = r > 0 ? begins[r - 1] + request->call.counts[r - 1] : 0;
    }
}

static void rewind_streams(fsdpi_rails *rails)
{
    for (int s = 0; s < FSDPI_STREAMS; s++) {
        fsdpi_stream *stream = &rails->streams[s];

        fsdpi_rails_rewind(&stream->next);
        stream->named = (rails->route & (s <= FSDPI_PARTIALS_IN ? FSDPI_REDUCES : FSDPI_MOVES)) == 0;
        stream->taken = stream->posted = stream->done = stream->begun = stream->ended = stream->released = 0;
    }
}

static void lay_out(fsdp_request *request, unsigned route)
{
    fsdp_context *ctx   = request->ctx;
    fsdpi_rails  *rails = &ctx->rails;

    find_parts(request);
    fsdpi_rails_size_chunks(request, route);
    rewind_streams(rails);
    rails->chunks     = fsdpi_rails_chunks(request, fsdpi_rails_part(request, ctx->rank).count);
    rails->n_messages = 0;
    rails->leaving = rails->taken = rails->reducing = rails->reduced = 0;
    rails->folds_begun = rails->folds_ended = 0;
    rails->folding                          = 0;
    rails->own_copied = rails->told = rails->n_working = 0;
    rails->is_still                                    = false;
    memset(rails->copied, 0, (size_t)ctx->nodes.size * sizeof *rails->copied);
}

static bool is_over(const fsdpi_rails *rails)
{
    for (int s = 0; s < FSDPI_STREAMS; s++) {
        if (!rails->streams[s].named || rails->streams[s].released < rails->streams[s].taken) {
            return false;
        }
    }
    return (rails->route & FSDPI_REDUCES) == 0 || rails->reduced == rails->chunks;
}

/* `stage` says how far an operation is. False while it waits to be started. */
static bool begin(fsdp_request *request, unsigned route)
{
    const fsdpi_rails_ops *ops   = fsdpi_rails_ops_of(request);
    fsdpi_rails           *rails = &request->ctx->rails;

    if (request->stage == LAY_OUT) {
        lay_out(request, route);
        ops->start(request, fsdpi_rails_start_number(rails));
        request->stage = START;
    }
    if (request->stage == START && ops->has_started(request, fsdpi_rails_start_number(rails))) {
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
    if (moved || !rails->is_still) { /* else there is nothing new to be done for any stream */
        FSDP_TRY(fsdpi_rails_post_receives(request, &moved));
        FSDP_TRY(fsdpi_rails_post_sends(request, &moved));
    }
    fsdpi_rails_tell_come(request);
    FSDP_TRY(fsdpi_rails_reduce(request, &moved));
    fsdpi_rails_copy_own_part(request, &moved, &copied);
    FSDP_TRY(fsdpi_rails_copy_from_peers(request, &moved, &copied));
    rails->is_still = !moved;
    if (moved) {
        *progress = FSDPI_MOVED;
    } else if (copied && is_over(rails) && fsdpi_rails_ops_of(request)->is_at_rest(request)) {
        *progress = FSDPI_FINISHED;
    }
    return FSDP_OK;
}
