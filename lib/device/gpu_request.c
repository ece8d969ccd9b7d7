#include "lib/device/gpu_request.h"

#include "lib/agreement.h"
#include "lib/context.h"

static const fsdpi_gpu_ops *ops_of(const fsdp_request *request)
{
    return request->ctx->gpu.device->ops;
}

/* The operation's own. */
static int number_of_stream(const fsdp_request *request)
{
    return request->call.has_op ? FSDPI_GPU_REDUCES : FSDPI_GPU_GATHERS;
}

/* Where what comes next goes. */
static fsdpi_gpu_stream stream_of(const fsdp_request *request)
{
    const int own = number_of_stream(request);

    return request->ctx->gpu.streams[request->aside ? FSDPI_GPU_STREAMS - 1 - own : own];
}

/* Of the operation's own stream, on a position of the node. */
static const fsdpi_gpu_events *events_of(const fsdp_request *request, int position)
{
    return &request->ctx->gpu.peers[position].events[number_of_stream(request)];
}

static bool has_failed(const fsdp_request *request)
{
    return request->verdict.status != FSDP_OK;
}

static void keep(fsdp_request *request, fsdp_status status)
{
    if (status != FSDP_OK && !has_failed(request)) {
        fsdpi_take_local_verdict(request, status);
    }
}

/* ---- with the caller --------------------------------------------------------------------------------------------- */

fsdp_status fsdpi_gpu_note_issue(fsdp_request *request)
{
    fsdpi_gpu_device *device = request->ctx->gpu.device;

    request->caller = fsdpi_gpu_caller(&request->ctx->gpu);
    if (request->event == NULL) {
        FSDP_TRY(device->ops->event_open(device, false, &request->event));
    }
    return device->ops->event_record(device, request->event, request->caller);
}

void fsdpi_gpu_begin(fsdp_request *request)
{
    keep(request, ops_of(request)->wait_for(request->ctx->gpu.device, stream_of(request), request->event));
}

fsdp_status fsdpi_gpu_note_end(fsdp_request *request)
{
    return ops_of(request)->event_record(request->ctx->gpu.device, request->event, stream_of(request));
}

fsdp_status fsdpi_gpu_hand_over(fsdp_request *request)
{
    return ops_of(request)->wait_for(request->ctx->gpu.device, request->caller, request->event);
}

void fsdpi_gpu_release_event(fsdp_request *request)
{
    if (request->event != NULL) {
        (void)ops_of(request)->event_close(request->ctx->gpu.device, request->event);
        request->event = NULL;
    }
}

/* ---- with peers -------------------------------------------------------------------------------------------------- */

/* Also where something has failed: peers wait for it. */
static void say(fsdp_request *request, fsdpi_gpu_event event)
{
    if (request->ctx->gpu.shares) {
        keep(request, ops_of(request)->event_record(request->ctx->gpu.device, event, stream_of(request)));
    }
}

static void hear(fsdp_request *request, fsdpi_gpu_event event)
{
    keep(request, ops_of(request)->wait_for(request->ctx->gpu.device, stream_of(request), event));
}

void fsdpi_gpu_say_ready(fsdp_request *request, uint64_t number)
{
    say(request, events_of(request, request->ctx->nodes.position)->ready[number & 1]);
}

void fsdpi_gpu_say_done(fsdp_request *request, uint64_t number)
{
    say(request, events_of(request, request->ctx->nodes.position)->done[number & 1]);
}

void fsdpi_gpu_hear_ready(fsdp_request *request, uint64_t number)
{
    const fsdp_context *ctx = request->ctx;

    for (int p = 0; p < ctx->nodes.size && ctx->gpu.shares; p++) {
        hear(request, events_of(request, p)->ready[number & 1]);
    }
}

void fsdpi_gpu_hear_done(fsdp_request *request, uint64_t number)
{
    const fsdp_context *ctx = request->ctx;

    for (int p = 0; p < ctx->nodes.size && ctx->gpu.shares; p++) {
        hear(request, events_of(request, p)->done[number & 1]);
    }
}

void fsdpi_gpu_hear_slots_free(fsdp_request *request, uint64_t number)
{
    const fsdp_context *ctx = request->ctx;

    for (int p = 0; p < ctx->nodes.size && ctx->gpu.shares; p++) {
        for (int s = 0; s < FSDPI_GPU_STREAMS; s++) {
            hear(request, ctx->gpu.peers[p].events[s].done[number & 1]);
        }
    }
}

/* ---- on two streams, between nodes ----------------------------------------------------------------------------------- */

void fsdpi_gpu_finish(fsdp_request *request)
{
    for (int s = 0; s < FSDPI_GPU_STREAMS; s++) {
        (void)ops_of(request)->stream_finish(request->ctx->gpu.device, request->ctx->gpu.streams[s]);
    }
}

void fsdpi_gpu_turn_aside(fsdp_request *request, bool aside)
{
    request->aside = aside;
}

void fsdpi_gpu_mark(fsdp_request *request, size_t number)
{
    fsdpi_gpu_device *device = request->ctx->gpu.device;
    fsdpi_gpu_event  *mark   = &request->ctx->gpu.marks[number];

    if (*mark == NULL) {
        keep(request, device->ops->event_open(device, false, mark));
    }
    if (!has_failed(request)) {
        keep(request, device->ops->event_record(device, *mark, stream_of(request)));
    }
}

bool fsdpi_gpu_is_past(fsdp_request *request, size_t number)
{
    fsdpi_gpu_device *device = request->ctx->gpu.device;
    bool              past   = false;

    if (!has_failed(request)) {
        keep(request, device->ops->event_is_done(device, request->ctx->gpu.marks[number], &past));
    }
    return past || has_failed(request);
}

void fsdpi_gpu_come_behind(fsdp_request *request, size_t number)
{
    if (!has_failed(request)) {
        hear(request, request->ctx->gpu.marks[number]);
    }
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

bool fsdpi_gpu_is_idle(fsdp_request *request)
{
    bool idle = true;

    if (!has_failed(request)) {
        keep(request, ops_of(request)->stream_is_idle(request->ctx->gpu.device, stream_of(request), &idle));
    }
    return idle || has_failed(request);
}

void fsdpi_gpu_move(fsdp_request *request, void *to, const void *from, size_t bytes)
{
    if (to != from && !has_failed(request)) {
        keep(request, ops_of(request)->copy(request->ctx->gpu.device, to, from, bytes, stream_of(request)));
    }
}

void fsdpi_gpu_reduce_to(fsdp_request *request, void *const *to, size_t n_to, const void *const *from, size_t n_from,
                         size_t count, fsdp_redop op, size_t divisor)
{
    if (!has_failed(request)) {
        keep(request, ops_of(request)->reduce(request->ctx->gpu.device, to, n_to, from, n_from, count,
                                              request->call.dtype, op, divisor, stream_of(request)));
    }
}

unsigned char *fsdpi_gpu_view(const fsdp_context *ctx, const void *in_mailbox)
{
    return ctx->gpu.view + ((const unsigned char *)in_mailbox - ctx->box.segment.base);
}

unsigned char *fsdpi_gpu_rest(const fsdp_context *ctx)
{
    return ctx->gpu.peers[ctx->nodes.position].slots + 2 * ctx->box.slot_bytes;
}

unsigned char *fsdpi_gpu_slot(const fsdp_context *ctx, int position, uint64_t number)
{
    if (ctx->gpu.shares) {
        return ctx->gpu.peers[position].slots + (number & 1) * ctx->box.slot_bytes;
    }
    return fsdpi_gpu_view(ctx, fsdpi_slot_of(&ctx->box, position, number));
}

bool fsdpi_gpu_through_host(const fsdp_context *ctx)
{
    return !ctx->gpu.shares || ctx->nodes.count > 1;
}
