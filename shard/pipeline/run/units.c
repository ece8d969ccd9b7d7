#include "shard/pipeline/run/units.h"

#include <string.h>

#include "lib/base/error.h"
#include "lib/device/memory.h"
#include "shard/schedule/failed_step.h"
#include "shard/schedule/gather.h"
#include "shard/state/model.h"

static const char function[] = "fsdp_pipeline_set_units";

/* ---- passes ------------------------------------------------------------------------------------------------------------- */

/* Gradients of micro-batches add up on this rank where the model has room for that, and the last ones bring them to the others. */
static fsdp_status choose_sync(const fsdpi_stage *stage)
{
    const bool last = stage->passes_left == 1;

    for (size_t u = 0; u < stage->n_units; u++) {
        fsdp_model *model = stage->units[u]->model;

        if (u == 0 || model != stage->units[u - 1]->model) {
            FSDP_TRY(
                fsdp_model_set_sync(model, last || !model->options.local_gradients ? FSDP_SYNC_ALL : FSDP_SYNC_NONE));
        }
    }
    return FSDP_OK;
}

fsdp_status fsdpi_stage_check_stream(const fsdp_pipeline *pipeline, const fsdpi_stage *stage)
{
    for (size_t u = 0; u < stage->n_units && pipeline->gpu.device != NULL; u++) {
        const fsdp_model *model = stage->units[u]->model;

        if (fsdpi_is_on_device(model) && fsdpi_gpu_caller(&model->ctx->gpu) != fsdpi_gpu_caller(&pipeline->ctx->gpu)) {
            return fsdpi_fail_together(pipeline->ctx, FSDP_ERR_STATE,
                                       "%s: the model of unit '%s' computes in another stream than the pipeline; call "
                                       "fsdp_stream_set() with the "
                                       "same stream for the contexts of both",
                                       pipeline->name, stage->units[u]->name);
        }
    }
    return FSDP_OK;
}

fsdp_status fsdpi_stage_begin(fsdpi_stage *stage, bool backward)
{
    if (backward) {
        FSDP_TRY(choose_sync(stage));
    }
    for (size_t u = 0; u < stage->n_units; u++) {
        FSDP_TRY(backward ? fsdp_unit_begin_backward(stage->units[u]) : fsdp_unit_begin_forward(stage->units[u]));
    }
    return FSDP_OK;
}

/* Backward passes end from the last unit to the first, as their layers do. */
fsdp_status fsdpi_stage_end(fsdpi_stage *stage, bool backward)
{
    for (size_t u = 0; u < stage->n_units; u++) {
        FSDP_TRY(backward ? fsdp_unit_end_backward(stage->units[stage->n_units - 1 - u])
                          : fsdp_unit_end_forward(stage->units[u]));
    }
    stage->passes_left -= backward;
    return FSDP_OK;
}

const char *fsdpi_stage_error(const fsdpi_stage *stage)
{
    return fsdpi_error_recorded(stage->units[0]->model->ctx);
}

void fsdpi_stage_reshard(fsdpi_stage *stage)
{
    for (size_t u = 0; u < stage->n_units; u++) {
        fsdpi_gather_reshard(stage->units[u]);
    }
}

void fsdpi_pipeline_fail_models(const fsdp_pipeline *pipeline, fsdp_status status, const char *text)
{
    for (int i = 0; i < pipeline->info.stages_here; i++) {
        const fsdpi_stage *stage = &pipeline->stages[i];

        for (size_t u = 0; u < stage->n_units; u++) {
            fsdp_model *model = stage->units[u]->model;

            if (!model->failed) {
                (void)fsdpi_record(model->ctx, status, "%s", text);
                (void)fsdpi_step_fail(model, status);
            }
        }
    }
}

/* ---- naming them ---------------------------------------------------------------------------------------------------------- */

fsdpi_stage *fsdpi_stage_of(const fsdp_pipeline *pipeline, int number)
{
    for (int i = 0; i < pipeline->info.stages_here; i++) {
        if (pipeline->stages[i].number == number) {
            return &pipeline->stages[i];
        }
    }
    return NULL;
}

static fsdp_status check_stage(const fsdp_pipeline *pipeline, int stage)
{
    fsdp_context *ctx = pipeline->ctx;

    if (stage < 0 || stage >= pipeline->info.stages) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: there is no stage %d; the pipeline has 0 to %d", function, stage,
                          pipeline->info.stages - 1);
    }
    if (pipeline->owner[stage] != ctx->rank) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: stage %d is on rank %d, and this is rank %d; name its units there",
                          function, stage, pipeline->owner[stage], ctx->rank);
    }
    return pipeline->step == 0
               ? FSDP_OK
               : fsdpi_fail(ctx, FSDP_ERR_STATE, "%s: the pipeline has run a step; name the units of all stages before",
                            function);
}

static bool is_in_a_stage(const fsdp_pipeline *pipeline, const fsdp_unit *unit, int *stage)
{
    for (int i = 0; i < pipeline->info.stages_here; i++) {
        for (size_t u = 0; u < pipeline->stages[i].n_units; u++) {
            if (pipeline->stages[i].units[u] == unit) {
                *stage = pipeline->stages[i].number;
                return true;
            }
        }
    }
    return false;
}

static fsdp_status check_unit(const fsdp_pipeline *pipeline, const fsdp_unit *unit, size_t n_units)
{
    fsdp_context *ctx   = pipeline->ctx;
    int           stage = 0;

    if (unit == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: a unit is NULL; pass those of fsdp_unit_add", function);
    }
    if (!unit->model->committed) {
        return fsdpi_fail(ctx, FSDP_ERR_STATE,
                          "%s: unit '%s' belongs to a model that is not committed; call fsdp_model_commit first",
                          function, unit->name);
    }
    if (fsdpi_is_on_device(unit->model) && pipeline->gpu.device != NULL &&
        unit->model->ctx->gpu.device->number != pipeline->gpu.device->number) {
        return fsdpi_fail(ctx, FSDP_ERR_UNSUPPORTED,
                          "%s: unit '%s' is on GPU %d, and this rank's activations are on GPU %d; select one, and open "
                          "both contexts with FSDP_BIND=none",
                          function, unit->name, unit->model->ctx->gpu.device->number, pipeline->gpu.device->number);
    }
    if (is_in_a_stage(pipeline, unit, &stage)) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: unit '%s' is in stage %d already; a unit is in one stage", function,
                          unit->name, stage);
    }
    if (n_units > (size_t)unit->model->ctx->config.views_in_flight) {
        return fsdpi_fail(ctx, FSDP_ERR_STATE,
                          "%s: a stage of %zu units, which are open at once, and FSDP_VIEWS_IN_FLIGHT is %d; set it to "
                          "%zu, or make fewer units of the stage's tensors",
                          function, n_units, unit->model->ctx->config.views_in_flight, n_units);
    }
    return FSDP_OK;
}

static fsdp_status check_units(const fsdp_pipeline *pipeline, fsdp_unit *const *units, size_t n_units)
{
    for (size_t u = 0; u < n_units; u++) {
        FSDP_TRY(check_unit(pipeline, units[u], n_units));
        for (size_t v = 0; v < u; v++) {
            if (units[v] == units[u]) {
                return fsdpi_fail(pipeline->ctx, FSDP_ERR_ARG, "%s: unit '%s' is there twice; name it once", function,
                                  units[u]->name);
            }
        }
    }
    return FSDP_OK;
}

fsdp_status fsdp_pipeline_set_units(fsdp_pipeline *pipeline, int stage, fsdp_unit *const *units, size_t n_units)
{
    if (pipeline == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the pipeline is NULL; pass one from fsdp_pipeline_create", function);
    }
    if (units == NULL && n_units > 0) {
        return fsdpi_fail(pipeline->ctx, FSDP_ERR_ARG, "%s: the units are NULL, and there are %zu", function, n_units);
    }
    FSDP_TRY(check_stage(pipeline, stage));
    fsdpi_stage *named = fsdpi_stage_of(pipeline, stage);
    if (named->has_units) {
        return fsdpi_fail(pipeline->ctx, FSDP_ERR_STATE, "%s: the units of stage %d have been named before", function,
                          stage);
    }
    FSDP_TRY(check_units(pipeline, units, n_units));
    if (n_units > 0) {
        named->units = fsdpi_alloc(pipeline->ctx, FSDP_MEMORY_BOOKKEEPING, n_units * sizeof(fsdp_unit *));
        if (named->units == NULL) {
            return FSDP_ERR_MEMORY;
        }
        memcpy(named->units, units, n_units * sizeof(fsdp_unit *));
    }
    named->n_units   = n_units;
    named->has_units = true;
    return FSDP_OK;
}
