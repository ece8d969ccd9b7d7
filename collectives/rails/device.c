/*
 * The rails between nodes on GPUs, symmetric memory: copies and kernels in the streams of the context, what leaves in the
 * operation's own, what comes in the other, so that both overlap with each other and with the messages. MPI is given the GPU's
 * memory where it takes that; else chunks go through pinned memory of the host, copied out before they are sent and in when
 * they have come. The host follows each chunk by a mark in the stream, and so all is done on the GPU when the operation ends.
 */
#include "collectives/arguments/slices.h"
#include "collectives/rails/chunks.h"
#include "collectives/rails/ops.h"
#include "lib/context/context.h"
#include "lib/progress/gpu_request.h"

/* How many chunks a part should have, and within which BYTES each. */
enum { CHUNKS = 16, CHUNK_LEAST = 64 << 10, CHUNK_MOST = 1 << 20 };

static bool stages(const fsdp_request *request)
{
    return !request->ctx->gpu.aware;
}

/*
 * From a GPU's own memory each message costs more than from the host's, which longer ones are better worth; but the first and
 * the last chunk of a part overlap with nothing.
 */
static size_t wanted_bytes(const fsdp_request *request)
{
    if (stages(request)) {
        return FSDPI_HOST_CHUNK_BYTES;
    }
    const size_t bytes = fsdpi_largest_slice(request) * request->call.width / CHUNKS;

    return bytes < CHUNK_LEAST ? CHUNK_LEAST : bytes < CHUNK_MOST ? bytes : CHUNK_MOST;
}

static size_t room_bytes(const fsdp_request *request, size_t places)
{
    return request->lane->box.rest_bytes / places;
}

static unsigned char *staging(const fsdp_request *request)
{
    return fsdpi_gpu_rest(&request->ctx->gpu);
}

static void turn(fsdp_request *request, fsdpi_direction direction)
{
    fsdpi_gpu_turn_aside(request, direction == FSDPI_COMING);
}

static bool mark(fsdp_request *request, size_t number)
{
    fsdpi_gpu_mark(request, number);
    return true;
}

/* Both streams come behind the work that the caller, and peers on the node, have put before the operation. */
static void start(fsdp_request *request, size_t first)
{
    fsdpi_gpu_hear_ready(request, request->number);
    fsdpi_gpu_mark(request, first);
    turn(request, FSDPI_COMING);
    fsdpi_gpu_come_behind(request, first);
}

/* MPI knows no streams: where it is given the caller's memory itself, the host waits for that work. */
static bool has_started(fsdp_request *request, size_t first)
{
    return stages(request) || fsdpi_gpu_is_past(request, first);
}

/* What comes is waited for at last: what leaves has been sent, and what is reduced has been seen to be final. */
static bool is_at_rest(fsdp_request *request)
{
    turn(request, FSDPI_COMING);
    const bool idle = fsdpi_gpu_is_idle(request);
    turn(request, FSDPI_LEAVING);
    return idle;
}

const fsdpi_rails_ops fsdpi_rails_device = {.wanted_bytes = wanted_bytes,
                                            .room_bytes   = room_bytes,
                                            .stages       = stages,
                                            .staging      = staging,
                                            .turn         = turn,
                                            .mark         = mark,
                                            .is_past      = fsdpi_gpu_is_past,
                                            .start        = start,
                                            .has_started  = has_started,
                                            .is_at_rest   = is_at_rest};
