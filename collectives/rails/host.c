/* The rails between nodes on host memory, which MPI takes as it is. */
#include "collectives/rails/chunks.h"
#include "collectives/rails/ops.h"
#include "collectives/reach/pieces.h"
#include "lib/context/context.h"

enum { FAST_CHUNK_BYTES = 256 << 10 };

/*
 * On a slow link, messages that MPI sends without asking the receiver first: the question would wait behind what is under
 * way. On one that no Ethernet of 10 Gbit/s reaches, what counts is how many messages there are. FSDP_CHUNK_BYTES decides
 * where it is set.
 */
static size_t wanted_bytes(const fsdp_request *request)
{
    static const double FAST = 1.6e9; /* BYTES per second */
    const fsdp_context *ctx  = request->ctx;

    if (ctx->config.chunk_bytes > 0) {
        return (size_t)ctx->config.chunk_bytes;
    }
    return ctx->link.rate > FAST ? FAST_CHUNK_BYTES : FSDPI_HOST_CHUNK_BYTES;
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
