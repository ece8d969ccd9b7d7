/* The rails between nodes on host memory, which MPI takes as it is. */
#include <stdint.h>

#include "collectives/rails/chunks.h"
#include "collectives/rails/ops.h"
#include "collectives/rails/route.h"
#include "collectives/reach/pieces.h"
#include "lib/context/context.h"

/* In a broadcast, the last node has nothing before a chunk has come through all others. */
static bool is_passed_on(const fsdp_request *request)
{
    return (request->ctx->rails.route & FSDPI_AROUND) != 0 && request->call.division == FSDPI_DIVISION_ROOT;
}

static unsigned kind_of_pieces(const fsdp_request *request)
{
    const fsdp_context *ctx     = request->ctx;
    const bool          gathers = ctx->rails.route == FSDPI_GATHERS;
    const bool          alone   = ctx->nodes.largest == 1 && (gathers || fsdpi_rails_pulls(request));
    const bool          plain   = (request->flags & (FSDPI_FLAG_SYMMETRIC | FSDPI_FLAG_AGAIN)) == 0;

    return (alone ? FSDPI_PIECES_ALONE : 0U) | (plain ? FSDPI_PIECES_PLAIN : 0U) |
           (gathers ? FSDPI_PIECES_GATHERED : 0U);
}

/* FSDP_CHUNK_BYTES decides where it is set. */
static size_t wanted_bytes(const fsdp_request *request)
{
    const fsdp_context *ctx   = request->ctx;
    const size_t        bytes = request->call.whole * request->call.width;
    const size_t        chunk = fsdpi_link_chunk(&ctx->link, kind_of_pieces(request), fsdpi_rails_vector(request));

    if (ctx->config.chunk_bytes > 0) {
        return (size_t)ctx->config.chunk_bytes;
    }
    return is_passed_on(request) ? fsdpi_link_hop(&ctx->link, bytes, ctx->nodes.count - 2, chunk) : chunk;
}

/* Half of staging memory is for what cannot be addressed on peers. */
static size_t room_bytes(const fsdp_request *request, size_t places)
{
    const fsdp_context *ctx = request->ctx;

    if (ctx->nodes.largest == 1 || (request->flags & FSDPI_FLAG_SYMMETRIC) != 0) {
        return request->lane->box.rest_bytes / places;
    }
    const size_t room = request->lane->box.rest_bytes / 2 / places, piece = fsdpi_piece(request) * request->call.width;

    return room < piece ? room : piece;
}

static bool stages(const fsdp_request *request)
{
    (void)request;
    return false;
}

static unsigned char *staging(const fsdp_request *request)
{
    const fsdp_context *ctx = request->ctx;

    return fsdpi_rest_of(&request->lane->box, ctx->nodes.position);
}

static void turn(fsdp_request *request, fsdpi_direction direction)
{
    (void)request;
    (void)direction;
}

static bool mark(fsdp_request *request, size_t number)
{
    (void)request;
    (void)number;
    return false;
}

static bool at_once(fsdp_request *request, size_t number)
{
    (void)request;
    (void)number;
    return true;
}

static void start(fsdp_request *request, size_t number)
{
    (void)request;
    (void)number;
}

static bool is_at_rest(fsdp_request *request)
{
    (void)request;
    return true;
}

const fsdpi_rails_ops fsdpi_rails_host = {.wanted_bytes = wanted_bytes,
                                          .room_bytes   = room_bytes,
                                          .stages       = stages,
                                          .staging      = staging,
                                          .turn         = turn,
                                          .mark         = mark,
                                          .is_past      = at_once,
                                          .start        = start,
                                          .has_started  = at_once,
                                          .is_at_rest   = is_at_rest};
