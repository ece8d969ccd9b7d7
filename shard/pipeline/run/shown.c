#include "shard/pipeline/run/shown.h"

/* BYTES that stage `stage` puts out for each micro-batch. */
static size_t bytes_out(const fsdpi_pipeline_plan *plan, int stage)
{
    const fsdp_pipeline_options *o = plan->options;

    if (stage + 1 == plan->source->schedule.stages) {
        return o->output_bytes;
    }
    return o->bytes_of != NULL ? o->bytes_of[stage] : o->bytes;
}

size_t fsdpi_flow_bytes(const fsdpi_pipeline_plan *plan, int stage, int flow)
{
    const bool output = flow == FSDPI_OUTPUTS || flow == FSDPI_OUTPUT_GRADIENTS;

    return output ? bytes_out(plan, stage) : stage > 0 ? bytes_out(plan, stage - 1) : 0;
}

bool fsdpi_is_near(const fsdp_pipeline *pipeline, int peer)
{
    const fsdp_context *ctx = pipeline->ctx;

    return fsdpi_is_on_node(&ctx->nodes, peer) && (pipeline->gpu.device == NULL || ctx->gpu.shares);
}

static bool leaves(int flow)
{
    return flow == FSDPI_OUTPUTS || flow == FSDPI_INPUT_GRADIENTS;
}

static int peer_of(const fsdpi_passes *passes, int stage, int flow)
{
    return flow == FSDPI_OUTPUTS || flow == FSDPI_OUTPUT_GRADIENTS ? fsdpi_behind(passes, stage)
                                                                   : fsdpi_before(passes, stage);
}

int fsdpi_senders_places(const fsdp_pipeline *pipeline, const fsdpi_pipeline_plan *plan, int stage, int flow)
{
    const bool             back = flow == FSDPI_OUTPUT_GRADIENTS;
    const fsdpi_stage_need need =
        fsdpi_stage_needs(&plan->source->passes, back ? stage + 1 : stage - 1, pipeline->buffers);

    return need.places[back ? FSDPI_INPUT_GRADIENTS : FSDPI_OUTPUTS];
}

/* Places of an outbox that lie where peers see them. */
static int places_of(const fsdp_pipeline *pipeline, const fsdpi_pipeline_plan *plan, int stage, int flow)
{
    return fsdpi_stage_needs(&plan->source->passes, stage, pipeline->buffers).places[flow];
}

static size_t offered_bytes(const fsdp_pipeline *pipeline, const fsdpi_pipeline_plan *plan, int stage, int flow)
{
    return leaves(flow)
               ? (size_t)places_of(pipeline, plan, stage, flow) * fsdpi_shelf_pitch(fsdpi_flow_bytes(plan, stage, flow))
               : 0;
}

/* Handles of events go with boxes on a GPU between which data is copied. */
static size_t handles_bytes(const fsdp_pipeline *pipeline, const fsdpi_pipeline_plan *plan, int stage, int flow)
{
    const int peer = peer_of(&plan->source->passes, stage, flow);

    if (pipeline->gpu.device == NULL || peer < 0 || !fsdpi_is_near(pipeline, peer)) {
        return 0;
    }
    return sizeof(fsdpi_gpu_handle) * (size_t)(leaves(flow) ? places_of(pipeline, plan, stage, flow)
                                                            : fsdpi_senders_places(pipeline, plan, stage, flow));
}

static size_t shown_bytes(const fsdp_pipeline *pipeline, const fsdpi_pipeline_plan *plan, int stage, int flow)
{
    const bool   has_notes = leaves(flow) && places_of(pipeline, plan, stage, flow) > 0;
    const size_t notes     = has_notes ? fsdpi_notes_bytes(plan->source->schedule.micros) : 0;

    return notes + (pipeline->gpu.device != NULL ? fsdpi_shelf_pitch(handles_bytes(pipeline, plan, stage, flow))
                                                 : offered_bytes(pipeline, plan, stage, flow));
}

typedef size_t measure(const fsdp_pipeline *pipeline, const fsdpi_pipeline_plan *plan, int stage, int flow);

static size_t begin_of(const fsdp_pipeline *pipeline, const fsdpi_pipeline_plan *plan, int stage, int flow,
                       measure *bytes)
{
    const fsdpi_passes *passes = &plan->source->passes;
    size_t              begin  = 0;

    for (int s = 0; s < stage; s++) {
        for (int f = 0; f < FSDPI_N_FLOWS && passes->owner[s] == passes->owner[stage]; f++) {
            begin += bytes(pipeline, plan, s, f);
        }
    }
    for (int f = 0; f < flow; f++) {
        begin += bytes(pipeline, plan, stage, f);
    }
    return begin;
}

size_t fsdpi_shown_begin(const fsdp_pipeline *pipeline, const fsdpi_pipeline_plan *plan, int stage, int flow)
{
    return begin_of(pipeline, plan, stage, flow, shown_bytes);
}

size_t fsdpi_offered_begin(const fsdp_pipeline *pipeline, const fsdpi_pipeline_plan *plan, int stage, int flow)
{
    return begin_of(pipeline, plan, stage, flow, offered_bytes);
}
