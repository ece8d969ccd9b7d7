#include "shard/pipeline/run/gpu.h"

#include "lib/base/error.h"

/* ---- events ------------------------------------------------------------------------------------------------------------------ */

/* `handles`: NULL, or for peers. */
static fsdp_status open_events(fsdp_pipeline *pipeline, fsdpi_gpu_event *events, int n, fsdpi_gpu_handle *handles)
{
    fsdpi_gpu_device *device = pipeline->gpu.device;

    for (int i = 0; i < n; i++) {
        FSDP_TRY(device->ops->event_open(device, handles != NULL, &events[i]));
        if (handles != NULL) {
            FSDP_TRY(device->ops->event_handle(device, events[i], &handles[i]));
        }
    }
    return FSDP_OK;
}

static fsdp_status open_peers_events(fsdp_pipeline *pipeline, fsdpi_gpu_event *events, int n,
                                     const fsdpi_gpu_handle *handles)
{
    fsdpi_gpu_device *device = pipeline->gpu.device;

    for (int i = 0; handles != NULL && i < n; i++) {
        FSDP_TRY(device->ops->open_event(device, &handles[i], &events[i]));
    }
    return FSDP_OK;
}

static void close_events(fsdp_pipeline *pipeline, fsdpi_gpu_event *events, int n)
{
    fsdpi_gpu_device *device = pipeline->gpu.device;

    for (int i = 0; events != NULL && i < n; i++) {
        (void)device->ops->event_close(device, events[i]);
        events[i] = NULL;
    }
}

/* Events of an inbox that stand for where its messages come from. */
static int n_taken(const fsdpi_inbox *box)
{
    return box->gpu.own != NULL ? box->gpu.n_peer : box->gpu.n_pinned;
}

static fsdp_status open_stage(fsdp_pipeline *pipeline, fsdpi_stage *stage)
{
    fsdpi_outbox *const out[] = {&stage->outputs, &stage->input_gradients};
    fsdpi_inbox *const  in[]  = {&stage->inputs, &stage->output_gradients};

    for (int b = 0; b < 2; b++) {
        FSDP_TRY(open_events(pipeline, out[b]->gpu.ready, out[b]->shelf.n, out[b]->gpu.own));
        if (in[b]->peer >= 0) {
            FSDP_TRY(open_events(pipeline, in[b]->gpu.taken, n_taken(in[b]), in[b]->gpu.own));
            FSDP_TRY(open_events(pipeline, in[b]->gpu.left, in[b]->shelf.n, NULL));
        }
    }
    return FSDP_OK;
}

static fsdp_status meet_stage(fsdp_pipeline *pipeline, fsdpi_stage *stage)
{
    fsdpi_outbox *const out[] = {&stage->outputs, &stage->input_gradients};
    fsdpi_inbox *const  in[]  = {&stage->inputs, &stage->output_gradients};

    for (int b = 0; b < 2; b++) {
        FSDP_TRY(open_peers_events(pipeline, out[b]->gpu.taken, out[b]->shelf.n, out[b]->gpu.peers));
        FSDP_TRY(open_peers_events(pipeline, in[b]->gpu.ready, in[b]->gpu.n_peer, in[b]->gpu.peers));
    }
    return FSDP_OK;
}

static void close_stage(fsdp_pipeline *pipeline, fsdpi_stage *stage)
{
    fsdpi_outbox *const out[] = {&stage->outputs, &stage->input_gradients};
    fsdpi_inbox *const  in[]  = {&stage->inputs, &stage->output_gradients};

    for (int b = 0; b < 2; b++) {
        close_events(pipeline, out[b]->gpu.ready, out[b]->shelf.n);
        close_events(pipeline, out[b]->gpu.taken, out[b]->shelf.n);
        close_events(pipeline, in[b]->gpu.ready, in[b]->gpu.n_peer);
        close_events(pipeline, in[b]->gpu.taken, n_taken(in[b]));
        close_events(pipeline, in[b]->gpu.left, in[b]->shelf.n);
    }
}

/* ---- opening and closing --------------------------------------------------------------------------------------------------------- */

fsdp_status fsdpi_pipeline_gpu_open(fsdp_pipeline *pipeline)
{
    fsdpi_gpu_device *device = pipeline->gpu.device;

    FSDP_TRY(device->ops->stream_open(device, true, &pipeline->gpu.in));
    FSDP_TRY(device->ops->stream_open(device, true, &pipeline->gpu.out));
    for (int i = 0; i < pipeline->info.stages_here; i++) {
        FSDP_TRY(open_stage(pipeline, &pipeline->stages[i]));
    }
    return FSDP_OK;
}

fsdp_status fsdpi_pipeline_gpu_meet(fsdp_pipeline *pipeline)
{
    for (int i = 0; i < pipeline->info.stages_here; i++) {
        FSDP_TRY(meet_stage(pipeline, &pipeline->stages[i]));
    }
    return FSDP_OK;
}

void fsdpi_pipeline_gpu_close(fsdp_pipeline *pipeline)
{
    fsdpi_gpu_device *device = pipeline->gpu.device;

    if (device == NULL) {
        return;
    }
    (void)device->ops->stream_close(device, pipeline->gpu.in);
    (void)device->ops->stream_close(device, pipeline->gpu.out);
    pipeline->gpu.in = pipeline->gpu.out = NULL;
    for (int i = 0; pipeline->stages != NULL && i < pipeline->info.stages_here; i++) {
        close_stage(pipeline, &pipeline->stages[i]);
    }
}

void fsdpi_pipeline_gpu_settle(fsdp_pipeline *pipeline)
{
    fsdpi_gpu_device *device = pipeline->gpu.device;

    (void)device->ops->stream_finish(device, pipeline->gpu.in);
    (void)device->ops->stream_finish(device, pipeline->gpu.out);
}

/* ---- in streams ------------------------------------------------------------------------------------------------------------------ */

static bool keep(fsdp_pipeline *pipeline, fsdp_status status)
{
    if (status != FSDP_OK) {
        fsdpi_pipeline_spoil(pipeline, status, "%s: %s", pipeline->name, fsdpi_error_recorded(pipeline->ctx));
    }
    return status == FSDP_OK;
}

void fsdpi_stream_mark(fsdp_pipeline *pipeline, fsdpi_gpu_stream stream, fsdpi_gpu_event event)
{
    fsdpi_gpu_device *device = pipeline->gpu.device;

    (void)keep(pipeline, device->ops->event_record(device, event, stream));
}

bool fsdpi_stream_wait(fsdp_pipeline *pipeline, fsdpi_gpu_stream stream, fsdpi_gpu_event event)
{
    fsdpi_gpu_device *device = pipeline->gpu.device;

    return keep(pipeline, device->ops->wait_for(device, stream, event));
}

bool fsdpi_stream_copy(fsdp_pipeline *pipeline, fsdpi_gpu_stream stream, void *to, const void *from, size_t bytes)
{
    fsdpi_gpu_device *device = pipeline->gpu.device;

    return keep(pipeline, device->ops->copy(device, to, from, bytes, stream));
}

void fsdpi_stream_hand_over(fsdp_pipeline *pipeline, fsdpi_gpu_event event)
{
    (void)fsdpi_stream_wait(pipeline, fsdpi_callers_stream(pipeline), event);
}

bool fsdpi_mark_is_past(fsdp_pipeline *pipeline, fsdpi_gpu_event event)
{
    fsdpi_gpu_device *device = pipeline->gpu.device;
    bool              past   = false;

    if (!keep(pipeline, device->ops->event_is_done(device, event, &past))) {
        (void)device->ops->stream_finish(device, fsdpi_callers_stream(pipeline));
        fsdpi_pipeline_gpu_settle(pipeline);
        past = true;
    }
    return past;
}
