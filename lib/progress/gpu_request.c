#include "lib/progress/gpu_request.h"

#include "lib/base/error.h"

static const fsdpi_gpu_ops *ops_of(const fsdp_request *request)
{
    return request->engine->gpu->device->ops;
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

    return request->engine->gpu->streams[request->aside ? FSDPI_GPU_STREAMS - 1 - own : own];
}

/* Of the operation's own stream, on a position of the node. */
static const fsdpi_gpu_events *events_of(const fsdp_request *request, int position)
{
    return &request->engine->gpu->peers[position].events[number_of_stream(request)];
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

static fsdp_status note_issue(fsdp_request *request)
{
    fsdpi_gpu_device *device = request->engine->gpu->device;

    request->caller = fsdpi_gpu_caller(request->engine->gpu);
    if (request->event == NULL) {
        FSDP_TRY(device->ops->event_open(device, false, &request->event));
    }
    return device->ops->event_record(device, request->event, request->caller);
}

static fsdp_status note_end(fsdp_request *request)
{
    return ops_of(request)->event_record(request->engine->gpu->device, request->event, stream_of(request));
}

static fsdp_status hand_over(fsdp_request *request)
{
    return ops_of(request)->wait_for(request->engine->gpu->device, request->caller, request->event);
}

static void release_event(fsdp_request *request)
{
    if (request->event != NULL) {
        (void)ops_of(request)->event_close(request->engine->gpu->device, request->event);
        request->event = NULL;
    }
}

/* ---- with peers -------------------------------------------------------------------------------------------------- */

/* Also where something has failed: peers wait for it. */
static void say(fsdp_request *request, fsdpi_gpu_event event)
{
    if (request->engine->gpu->shares) {
        keep(request, ops_of(request)->event_record(request->engine->gpu->device, event, stream_of(request)));
    }
}

static void hear(fsdp_request *request, fsdpi_gpu_event event)
{
    keep(request, ops_of(request)->wait_for(request->engine->gpu->device, stream_of(request), event));
}

void fsdpi_gpu_say_ready(fsdp_request *request, uint64_t number)
{
    say(request, events_of(request, request->engine->nodes->position)->ready[number & 1]);
}

/* Behind what was in the caller's stream, this rank's buffers may be used. */
static void begin(fsdp_request *request)
{
    hear(request, request->event);
    fsdpi_gpu_say_ready(request, request->number);
}

void fsdpi_gpu_say_done(fsdp_request *request, uint64_t number)
{
    say(request, events_of(request, request->engine->nodes->position)->done[number & 1]);
}

void fsdpi_gpu_hear_ready(fsdp_request *request, uint64_t number)
{
    const fsdpi_gpu *gpu = request->engine->gpu;

    for (int p = 0; p < gpu->nodes->size && gpu->shares; p++) {
        hear(request, events_of(request, p)->ready[number & 1]);
    }
}

void fsdpi_gpu_hear_done(fsdp_request *request, uint64_t number)
{
    const fsdpi_gpu *gpu = request->engine->gpu;

    for (int p = 0; p < gpu->nodes->size && gpu->shares; p++) {
        hear(request, events_of(request, p)->done[number & 1]);
    }
}

void fsdpi_gpu_hear_slots_free(fsdp_request *request, uint64_t number)
{
    const fsdpi_gpu *gpu = request->engine->gpu;

    for (int p = 0; p < gpu->nodes->size && gpu->shares; p++) {
        for (int s = 0; s < FSDPI_GPU_STREAMS; s++) {
            hear(request, gpu->peers[p].events[s].done[number & 1]);
        }
    }
}

/* ---- on two streams, between nodes ----------------------------------------------------------------------------------- */

/* Waits on the host for all of it, in both streams. */
static void finish(fsdp_request *request)
{
    for (int s = 0; s < FSDPI_GPU_STREAMS; s++) {
        (void)ops_of(request)->stream_finish(request->engine->gpu->device, request->engine->gpu->streams[s]);
    }
}

void fsdpi_gpu_turn_aside(fsdp_request *request, bool aside)
{
    request->aside = aside;
}

void fsdpi_gpu_mark(fsdp_request *request, size_t number)
{
    fsdpi_gpu_device *device = request->engine->gpu->device;
    fsdpi_gpu_event  *mark   = &request->engine->gpu->marks[number];

    if (*mark == NULL) {
        keep(request, device->ops->event_open(device, false, mark));
    }
    if (!has_failed(request)) {
        keep(request, device->ops->event_record(device, *mark, stream_of(request)));
    }
}

bool fsdpi_gpu_is_past(fsdp_request *request, size_t number)
{
    fsdpi_gpu_device *device = request->engine->gpu->device;
    bool              past   = false;

    if (!has_failed(request)) {
        keep(request, device->ops->event_is_done(device, request->engine->gpu->marks[number], &past));
    }
    return past || has_failed(request);
}

void fsdpi_gpu_come_behind(fsdp_request *request, size_t number)
{
    if (!has_failed(request)) {
        hear(request, request->engine->gpu->marks[number]);
    }
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

bool fsdpi_gpu_is_idle(fsdp_request *request)
{
    bool idle = true;

    if (!has_failed(request)) {
        keep(request, ops_of(request)->stream_is_idle(request->engine->gpu->device, stream_of(request), &idle));
    }
    return idle || has_failed(request);
}

void fsdpi_gpu_move(fsdp_request *request, void *to, const void *from, size_t bytes)
{
    if (to != from && !has_failed(request)) {
        keep(request, ops_of(request)->copy(request->engine->gpu->device, to, from, bytes, stream_of(request)));
    }
}

void fsdpi_gpu_reduce_as(fsdp_request *request, void *const *to, size_t n_to, const void *const *from, size_t n_from,
                         size_t count, fsdp_dtype dtype, fsdp_redop op, size_t divisor)
{
    if (!has_failed(request)) {
        keep(request, ops_of(request)->reduce(request->engine->gpu->device, to, n_to, from, n_from, count, dtype, op,
                                              divisor, stream_of(request)));
    }
}

void fsdpi_gpu_reduce_to(fsdp_request *request, void *const *to, size_t n_to, const void *const *from, size_t n_from,
                         size_t count, fsdp_redop op, size_t divisor)
{
    fsdpi_gpu_reduce_as(request, to, n_to, from, n_from, count, request->call.dtype, op, divisor);
}

void fsdpi_gpu_cast_to(fsdp_request *request, void *to, fsdp_dtype to_dtype, const void *from, fsdp_dtype from_dtype,
                       size_t count)
{
    fsdpi_gpu_device *device = request->engine->gpu->device;

    if (!has_failed(request)) {
        keep(request, device->ops->compute->cast(device, to, to_dtype, from, from_dtype, count, stream_of(request)));
    }
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

const fsdpi_request_ops fsdpi_gpu_request_ops = {
    .issue     = note_issue,
    .begin     = begin,
    .end       = note_end,
    .abandon   = finish, /* no GPU uses the buffers of another rank any more */
    .hand_over = hand_over,
    .release   = release_event,
};
