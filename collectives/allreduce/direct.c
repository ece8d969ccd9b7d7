/*
 * Allreduce on one node, symmetric buffers: each rank reduces its own part of the vector from all L inputs, in rank order,
 * and stores it into all L results. In place this is free of races, since only rank r touches part r of any buffer.
 * Short vectors, where input and output are apart: each rank reduces the whole for itself, and writes to nobody.
 *
 * Cost on L ranks for S bytes: two synchronisations and 2 S of memory traffic per rank; short ones (L + 1) S.
 */
#include "collectives/allreduce/allreduce.h"
#include "collectives/reach/pieces.h"
#include "collectives/reach/reach.h"
#include "lib/context/context.h"

enum { PIECES_PER_STEP = 2, SHORT_BYTES = 8 << 10 };

/* What this rank reduces. */
static fsdpi_slice own_share(const fsdp_request *request, bool alone)
{
    return alone ? (fsdpi_slice){0, request->call.count} : fsdpi_slice_of(request, request->ctx->rank);
}

/* Everyone for itself: the same decision on all ranks, from what all of them know. */
static bool for_itself(const fsdp_request *request)
{
    return (request->flags & FSDPI_FLAG_SEPARATE) != 0 && (request->flags & FSDPI_FLAG_SHARED) == 0 &&
           request->call.count * request->call.width <= SHORT_BYTES;
}

/* One piece into the results of all ranks, or into the one that they share. */
static fsdp_status reduce_to_all(fsdp_request *request, size_t begin, size_t count)
{
    const fsdp_context *ctx   = request->ctx;
    const size_t        width = request->call.width;
    const bool          one   = (request->flags & FSDPI_FLAG_SHARED) != 0;
    unsigned char     **to    = (unsigned char **)(void *)(ctx->operands + ctx->nodes.size);
    int                 n_to  = 0;

    for (int p = 0; p < ctx->nodes.size; p++) {
        if (!one || p == ctx->nodes.position) {
            to[n_to++] = fsdpi_peer(request, p, FSDPI_OUTPUT) + begin * width;
        }
    }
    return fsdpi_reduce_inputs_to(request, begin, count, to, n_to);
}

static fsdp_status advance(fsdp_request *request, fsdpi_progress *progress)
{
    const bool        alone = for_itself(request);
    const fsdpi_slice mine  = own_share(request, alone);
    const size_t      piece = fsdpi_piece(request), width = request->call.width;

    for (int i = 0; i < PIECES_PER_STEP && request->at < mine.count; i++) {
        const fsdpi_slice next = fsdpi_next_piece(request, mine, piece);

        if (alone) {
            unsigned char *const to = (unsigned char *)request->call.out + next.begin * width;
            FSDP_TRY(fsdpi_reduce_inputs_to(request, next.begin, next.count, &to, 1));
        } else {
            FSDP_TRY(reduce_to_all(request, next.begin, next.count));
        }
        request->at += next.count;
    }
    *progress = request->at < mine.count ? FSDPI_MOVED : FSDPI_FINISHED;
    return FSDP_OK;
}

const fsdpi_algorithm fsdpi_allreduce_direct = {.name = "direct", .advance = advance, .leaves_together = true};
