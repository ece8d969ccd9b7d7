#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fsdp/pipeline.h"
#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/options.h"
#include "lib/base/yielding.h"
#include "lib/context/buffer_alloc.h"
#include "lib/context/gpu_context.h"
#include "lib/device/memory.h"
#include "shard/pipeline/run/gpu.h"
#include "shard/pipeline/run/layout.h"
#include "shard/pipeline/run/pipeline.h"
#include "shard/pipeline/run/proven.h"

static const char function[] = "fsdp_pipeline_create";

enum { MOST_BUFFERS = 65536 };
static const size_t MOST_BYTES = (size_t)1 << 40; /* so that no sum overflows */

/* ---- options ------------------------------------------------------------------------------------------------------------ */

void fsdp_pipeline_options_init_size(fsdp_pipeline_options *options, size_t size)
{
    static const fsdp_pipeline_options defaults = FSDP_PIPELINE_OPTIONS_DEFAULT;

    fsdpi_options_give(&defaults, sizeof defaults, options, size);
}

void fsdp_pipeline_callbacks_init_size(fsdp_pipeline_callbacks *callbacks, size_t size)
{
    static const fsdp_pipeline_callbacks defaults = {.size = sizeof defaults};

    fsdpi_options_give(&defaults, sizeof defaults, callbacks, size);
}

static fsdp_status check_numbers(fsdp_context *ctx, const fsdp_pipeline_options *o)
{
    if (o->buffers < 1 || o->buffers > MOST_BUFFERS) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: buffers is %d; it must be 1 to %d", function, o->buffers,
                                   MOST_BUFFERS);
    }
    if (o->most_held < 0) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: most_held is %d; it must be 0 or more", function,
                                   o->most_held);
    }
    if (o->file != NULL && o->text != NULL) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: the schedule is given as a file and as text; give one",
                                   function);
    }
    if (o->output_bytes > MOST_BYTES) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: output_bytes is %zu; it must be at most %zu", function,
                                   o->output_bytes, MOST_BYTES);
    }
    return FSDP_OK;
}

static fsdp_status check_placement(fsdp_context *ctx, const fsdp_pipeline_options *o)
{
    if (o->placement == FSDP_ON_DEVICE_OFFLOADED) {
        return fsdpi_fail_together(ctx, FSDP_ERR_UNSUPPORTED,
                                   "%s: placement is FSDP_ON_DEVICE_OFFLOADED, which activations do not have; use "
                                   "FSDP_ON_DEVICE, with models of any placement",
                                   function);
    }
    if (o->placement != FSDP_ON_HOST && o->placement != FSDP_ON_DEVICE) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: %d is no placement; use FSDP_ON_HOST or FSDP_ON_DEVICE",
                                   function, (int)o->placement);
    }
    if (o->placement == FSDP_ON_DEVICE && ctx->gpu.device == NULL) {
        return fsdpi_fail_together(ctx, FSDP_ERR_UNSUPPORTED,
                                   "%s: activations on the GPU, and this context uses none (%s); use FSDP_ON_HOST",
                                   function, fsdpi_gpu_why_none(ctx));
    }
    return FSDP_OK;
}

static fsdp_status check_callbacks(fsdp_context *ctx, const fsdp_pipeline_callbacks *given,
                                   fsdp_pipeline_callbacks *callbacks)
{
    if (given == NULL) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: the callbacks are NULL; pass some", function);
    }
    FSDP_TRY(fsdpi_options_take(ctx, "fsdp_pipeline_callbacks", given, callbacks, sizeof *callbacks));
    const char *missing = callbacks->forward == NULL          ? "forward"
                          : callbacks->loss == NULL           ? "loss"
                          : callbacks->backward_input == NULL ? "backward_input"
                                                              : NULL;
    return missing == NULL
               ? FSDP_OK
               : fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: the callback `%s` is NULL; set it on every rank", function,
                                     missing);
}

/* What needs the schedule to be known. */
static fsdp_status check_sizes(fsdp_context *ctx, const fsdp_pipeline_options *o, const fsdpi_schedule *schedule)
{
    for (int s = 0; s + 1 < schedule->stages; s++) {
        const size_t bytes = o->bytes_of != NULL ? o->bytes_of[s] : o->bytes;

        if (bytes == 0 || bytes > MOST_BYTES) {
            return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: stage %d passes %zu bytes on; there must be 1 to %zu",
                                       function, s, bytes, MOST_BYTES);
        }
    }
    if (o->batch % (size_t)schedule->micros != 0) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_ARG,
            "%s: a batch of %zu samples and %d micro-batches: the last would be of another size; "
            "use a number that divides %zu",
            function, o->batch, schedule->micros, o->batch);
    }
    return FSDP_OK;
}

static bool has_split_passes(const fsdpi_schedule *schedule)
{
    for (int r = 0; r < schedule->ranks; r++) {
        for (size_t i = 0; i < schedule->rows[r].n; i++) {
            if (schedule->rows[r].list[i].work == FSDPI_RUN_BACKWARD_WEIGHT) {
                return true;
            }
        }
    }
    return false;
}

static fsdp_status check_split(fsdp_context *ctx, const fsdp_pipeline_callbacks *callbacks,
                               const fsdpi_schedule *schedule)
{
    if (callbacks->backward_weight == NULL && has_split_passes(schedule)) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "%s: the schedule has backward passes in two actions, I and W, and the callback "
                                   "`backward_weight` is NULL; set it, or use a schedule with B, such as 1f1b",
                                   function);
    }
    return FSDP_OK;
}

/* Whether some messages are MPI's. */
static bool has_far_messages(const fsdp_context *ctx, fsdp_placement placement)
{
    return ctx->nodes.count > 1 || (placement == FSDP_ON_DEVICE && ctx->size > 1 && !ctx->gpu.shares);
}

static fsdp_status check_tags(fsdp_context *ctx, const fsdp_pipeline_options *o, const fsdpi_schedule *schedule)
{
    const long long most = ctx->lanes[FSDPI_LANE_SHORT].messages.largest_tag;
    const long long n    = 2LL * schedule->stages * schedule->micros;

    return !has_far_messages(ctx, o->placement) || n <= most
               ? FSDP_OK
               : fsdpi_fail_together(ctx, FSDP_ERR_UNSUPPORTED,
                                     "%s: %d stages and %d micro-batches are more messages than this MPI has tags for, "
                                     "%lld; use fewer micro-batches",
                                     function, schedule->stages, schedule->micros, most);
}

static fsdp_status check(fsdp_context *ctx, const fsdp_pipeline_options *given, fsdp_pipeline_options *options,
                         const fsdp_pipeline_callbacks *given_callbacks, fsdp_pipeline_callbacks *callbacks,
                         fsdpi_proven *source)
{
    FSDP_TRY(fsdpi_options_take(ctx, "fsdp_pipeline_options", given, options, sizeof *options));
    FSDP_TRY(check_callbacks(ctx, given_callbacks, callbacks));
    FSDP_TRY(check_numbers(ctx, options));
    FSDP_TRY(check_placement(ctx, options));
    FSDP_TRY(fsdpi_proven_open(source, ctx, options));
    FSDP_TRY(check_sizes(ctx, options, &source->schedule));
    FSDP_TRY(check_split(ctx, callbacks, &source->schedule));
    return check_tags(ctx, options, &source->schedule);
}

/* ---- counting and agreeing ---------------------------------------------------------------------------------------------- */

static void describe(fsdp_pipeline *pipeline, const fsdpi_proven *source)
{
    const fsdpi_rank_run *run = &source->run.ranks[pipeline->ctx->rank];

    pipeline->info = (fsdp_pipeline_info){.ranks       = source->schedule.ranks,
                                          .stages      = source->schedule.stages,
                                          .micros      = source->schedule.micros,
                                          .stages_here = fsdpi_stages_of_rank(&source->passes, pipeline->ctx->rank),
                                          .most_held   = run->most_held,
                                          .most_owed   = run->most_owed};
    for (size_t i = 0; i < source->schedule.rows[pipeline->ctx->rank].n; i++) {
        const fsdpi_work work = source->schedule.rows[pipeline->ctx->rank].list[i].work;
        pipeline->info.messages += work == FSDPI_SEND_F || work == FSDPI_SEND_B;
    }
}

static void count_bytes(fsdp_pipeline_info *info, bool on_device, const fsdpi_pipeline_plan *plan)
{
    const size_t held = fsdpi_alloc_size(plan->held);

    info->device_bytes = on_device ? held + plan->offered : 0;
    info->pinned_bytes = plan->pinned;
    info->bytes        = info->device_bytes + plan->pinned + plan->shown + (on_device ? 0 : held);
}

/* The stages are what the rest is counted for. */
static fsdp_status count(fsdp_pipeline *pipeline, fsdpi_pipeline_plan *plan)
{
    fsdp_context *ctx = pipeline->ctx;

    describe(pipeline, plan->source);
    if (pipeline->info.stages_here > 0) {
        pipeline->stages =
            fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, (size_t)pipeline->info.stages_here * sizeof *pipeline->stages);
        if (pipeline->stages == NULL) {
            return FSDP_ERR_MEMORY;
        }
    }
    fsdpi_pipeline_count(pipeline, plan);
    count_bytes(&pipeline->info, pipeline->gpu.device != NULL, plan);
    if (plan->options->memory_limit > 0 && pipeline->info.bytes > plan->options->memory_limit) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "%s: activations and messages need %zu bytes on rank %d, %zu of them on its GPU, "
                                   "and the limit is %zu; use smaller micro-batches, another schedule or a higher "
                                   "memory_limit",
                                   function, pipeline->info.bytes, ctx->rank, pipeline->info.device_bytes,
                                   plan->options->memory_limit);
    }
    return FSDP_OK;
}

/* Of all that ranks must have alike. */
static uint64_t fingerprint(const fsdp_pipeline_options *o, const fsdpi_proven *source, bool has_weight)
{
    uint64_t hash = fsdpi_proven_hash(source);

    hash = fsdpi_hash_word(hash, (uint64_t)o->buffers);
    hash = fsdpi_hash_word(hash, o->output_bytes);
    hash = fsdpi_hash_word(hash, o->batch);
    hash = fsdpi_hash_word(hash, has_weight);
    hash = fsdpi_hash_word(hash, (uint64_t)o->placement);
    for (int s = 0; s + 1 < source->schedule.stages; s++) {
        hash = fsdpi_hash_word(hash, o->bytes_of != NULL ? o->bytes_of[s] : o->bytes);
    }
    return hash;
}

static fsdp_status agree(fsdp_pipeline *pipeline, const fsdp_pipeline_options *o, const fsdpi_proven *source,
                         fsdp_status status)
{
    const bool good = status == FSDP_OK;
    char       label[FSDPI_DETAIL_BYTES];
    uint64_t   hash = 0;

    (void)snprintf(label, sizeof label, "no schedule");
    if (good) {
        hash = fingerprint(o, source, pipeline->callbacks.backward_weight != NULL);
        (void)snprintf(label, sizeof label, "%s, %d stages, %d micro-batches, %d buffers, %s, %08" PRIx32,
                       o->file != NULL   ? o->file
                       : o->text != NULL ? "text"
                                         : o->schedule,
                       source->schedule.stages, source->schedule.micros, o->buffers,
                       o->placement == FSDP_ON_DEVICE ? "on GPUs" : "on the host", (uint32_t)hash);
    }
    return fsdpi_agree(pipeline->ctx, function, label, hash, status, true);
}

/* ---- allocating --------------------------------------------------------------------------------------------------------- */

/* What this rank alone uses, on its GPU. */
static fsdp_status allocate_on_device(fsdp_pipeline *pipeline, const fsdpi_pipeline_plan *plan)
{
    fsdp_context     *ctx    = pipeline->ctx;
    fsdpi_gpu_device *device = pipeline->gpu.device;

    pipeline->held_bytes       = fsdpi_alloc_size(plan->held);
    pipeline->gpu.pinned_bytes = plan->pinned;
    FSDP_TRY(device->ops->alloc(device, "activations of a pipeline", pipeline->held_bytes, (void **)&pipeline->held));
    fsdpi_count_device_memory(ctx, FSDP_MEMORY_BUFFERS, pipeline->held_bytes);
    FSDP_TRY(device->ops->alloc_pinned(device, "messages of a pipeline", plan->pinned, (void **)&pipeline->gpu.pinned));
    fsdpi_count_memory(ctx, FSDP_MEMORY_BUFFERS, plan->pinned);
    return FSDP_OK;
}

static fsdp_status allocate_own(fsdp_pipeline *pipeline, const fsdpi_pipeline_plan *plan)
{
    fsdp_context *ctx = pipeline->ctx;

    pipeline->lists_bytes = plan->lists;
    pipeline->lists       = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, plan->lists);
    if (pipeline->lists == NULL) {
        return FSDP_ERR_MEMORY;
    }
    if (pipeline->gpu.device != NULL) {
        return allocate_on_device(pipeline, plan);
    }
    pipeline->held_bytes = plan->held;
    pipeline->held       = fsdpi_alloc(ctx, FSDP_MEMORY_BUFFERS, plan->held);
    return pipeline->held != NULL || plan->held == 0 ? FSDP_OK : FSDP_ERR_MEMORY;
}

/* What all ranks allocate together. */
static fsdp_status allocate_shown(fsdp_pipeline *pipeline, const fsdpi_pipeline_plan *plan)
{
    fsdp_context *ctx = pipeline->ctx;

    if (ctx->size == 1) {
        return FSDP_OK;
    }
    FSDP_TRY(fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, plan->shown, &pipeline->shown));
    return pipeline->gpu.device == NULL
               ? FSDP_OK
               : fsdp_buffer_alloc(ctx, FSDP_BUFFER_DEVICE, plan->offered, (void **)&pipeline->gpu.offered);
}

static fsdp_status allocate(fsdp_pipeline *pipeline, fsdpi_pipeline_plan *plan)
{
    fsdp_context *ctx = pipeline->ctx;

    FSDP_TRY(fsdpi_agree(ctx, function, "memory", 0, allocate_own(pipeline, plan), true));
    FSDP_TRY(allocate_shown(pipeline, plan));
    if (has_far_messages(ctx, plan->options->placement)) {
        FSDPI_TRY_MPI(ctx, fsdpi_mpi_duplicate(ctx->comm, &pipeline->comm, ctx->config.timeout_s));
    }
    fsdp_status status = fsdpi_pipeline_lay_out(pipeline, plan);
    if (pipeline->gpu.device != NULL && status == FSDP_OK) {
        status = fsdpi_pipeline_gpu_open(pipeline);
    }
    FSDP_TRY(fsdpi_agree(ctx, function, "layout", 0, status, true));
    return pipeline->gpu.device == NULL
               ? FSDP_OK
               : fsdpi_agree(ctx, function, "events", 0, fsdpi_pipeline_gpu_meet(pipeline), true);
}

/* ---- both --------------------------------------------------------------------------------------------------------------- */

static void free_units(fsdp_pipeline *pipeline)
{
    for (int i = 0; pipeline->stages != NULL && i < pipeline->info.stages_here; i++) {
        fsdpi_stage *stage = &pipeline->stages[i];
        fsdpi_free(pipeline->ctx, FSDP_MEMORY_BOOKKEEPING, stage->units, stage->n_units * sizeof(fsdp_unit *));
    }
}

/* Behind its streams, which are closed. Once one of its ranks has failed, a GPU may be waiting for another that is gone. */
static void release_on_device(fsdp_pipeline *pipeline)
{
    fsdp_context     *ctx    = pipeline->ctx;
    fsdpi_gpu_device *device = pipeline->gpu.device;

    if (ctx->broken == FSDP_OK) {
        fsdpi_pipeline_gpu_close(pipeline);
        if (pipeline->gpu.offered != NULL) {
            fsdpi_buffer_free_device(ctx, pipeline->gpu.offered);
        }
        (void)device->ops->release(device, pipeline->held);
        (void)device->ops->release_pinned(device, pipeline->gpu.pinned);
    }
    if (pipeline->held != NULL) {
        fsdpi_uncount_device_memory(ctx, FSDP_MEMORY_BUFFERS, pipeline->held_bytes);
    }
    if (pipeline->gpu.pinned != NULL) {
        fsdpi_uncount_memory(ctx, FSDP_MEMORY_BUFFERS, pipeline->gpu.pinned_bytes);
    }
}

/* In a broken context messages may still be under way, and their memory stays. */
static void release(fsdp_pipeline *pipeline)
{
    fsdp_context *ctx = pipeline->ctx;

    free_units(pipeline);
    if (pipeline->gpu.device != NULL) {
        release_on_device(pipeline);
    }
    if (fsdpi_is_at_rest(&ctx->core)) {
        if (pipeline->shown != NULL) {
            fsdpi_buffer_drop(ctx, pipeline->shown);
        }
        if (pipeline->gpu.device == NULL) {
            fsdpi_free(ctx, FSDP_MEMORY_BUFFERS, pipeline->held, pipeline->held_bytes);
        }
        fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, pipeline->lists, pipeline->lists_bytes);
        if (pipeline->comm != MPI_COMM_NULL) {
            (void)MPI_Comm_free(&pipeline->comm);
        }
    }
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, pipeline->stages,
               (size_t)pipeline->info.stages_here * sizeof *pipeline->stages);
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, pipeline, sizeof *pipeline);
}

static void release_owned(void *object)
{
    fsdp_pipeline *pipeline = object;

    fsdpi_disown(pipeline->ctx, &pipeline->owned);
    release(pipeline);
}

void fsdp_pipeline_destroy(fsdp_pipeline *pipeline)
{
    if (pipeline != NULL) {
        release_owned(pipeline);
    }
}

static fsdp_status make(fsdp_context *ctx, const fsdp_pipeline_options *given, const fsdp_pipeline_callbacks *callbacks,
                        fsdp_pipeline *made, fsdpi_proven *source)
{
    fsdp_pipeline_options options = FSDP_PIPELINE_OPTIONS_DEFAULT;
    fsdpi_pipeline_plan   plan    = {.options = &options, .source = source};

    made->ctx            = ctx;
    made->comm           = MPI_COMM_NULL;
    made->callbacks.size = sizeof made->callbacks;
    fsdp_status status   = check(ctx, given, &options, callbacks, &made->callbacks, source);
    made->buffers        = options.buffers;
    made->gpu.device     = status == FSDP_OK && options.placement == FSDP_ON_DEVICE ? ctx->gpu.device : NULL;
    made->gpu.staged     = !ctx->gpu.aware;
    status               = status == FSDP_OK ? count(made, &plan) : status;
    const bool flawed    = status != FSDP_OK;
    status               = agree(made, &options, source, status);
    if (status != FSDP_OK) {
        if (flawed) {
            fsdpi_proven_show_flaw(source, ctx, status);
        }
        return status;
    }
    return allocate(made, &plan);
}

fsdp_status fsdp_pipeline_create(fsdp_context *ctx, const fsdp_pipeline_options *options,
                                 const fsdp_pipeline_callbacks *callbacks, fsdp_pipeline **pipeline)
{
    fsdpi_proven source = {0};

    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_init", function);
    }
    fsdp_pipeline *made = pipeline != NULL ? fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, sizeof *made) : NULL;
    if (made == NULL) { /* the other ranks are told where they compare schedules */
        const fsdp_status why =
            pipeline == NULL
                ? fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: the place for the pipeline is NULL", function)
                : FSDP_ERR_MEMORY;
        return fsdpi_agree(ctx, function, "no schedule", 0, why, true);
    }
    *pipeline                = NULL;
    const fsdp_status status = make(ctx, options, callbacks, made, &source);
    fsdpi_proven_close(&source);
    if (status != FSDP_OK) {
        release(made);
        return status;
    }
    fsdpi_own(ctx, &made->owned, "pipeline", made, release_owned);
    *pipeline = made;
    return FSDP_OK;
}
