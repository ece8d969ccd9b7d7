#include "fsdp/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "fsdp/lbfgs.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "lib/base/options.h"
#include "lib/base/plural.h"
#include "lib/context/gpu_context.h"
#include "lib/device/memory.h"
#include "shard/hooks/model_hook.h"
#include "shard/model/device_memory.h"
#include "shard/model/node_memory.h"
#include "shard/optimizer/optimizer.h"
#include "shard/schedule/gather.h"
#include "shard/schedule/zero_grad.h"
#include "shard/state/axis_strategies.h"
#include "shard/state/described.h"
#include "shard/state/groups.h"
#include "shard/state/model.h"
#include "shard/state/optimizer_kind.h"
#include "shard/state/plan.h"
#include "shard/state/plane.h"
#include "shard/state/strategy.h"
#include "shard/state/tensor_groups.h"
#include "shard/storage/compute.h"
#include "shard/storage/initial_values.h"
#include "shard/storage/storage.h"

enum { MOST_RECORDED_PASSES = 1 << 24 };

/* ---- creation ---------------------------------------------------------------------------------------------------- */

/* `masters`: their type, which is a possible one too. */
static fsdp_status check_dtype(fsdp_context *ctx, const char *field, fsdp_dtype dtype, fsdp_dtype masters)
{
    if (dtype != masters && dtype != FSDP_F32 && dtype != FSDP_BF16 && dtype != FSDP_F16) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_ARG,
            "fsdp_model_create: %s is %s; use f32, bf16 or f16%s, and start from FSDP_MODEL_OPTIONS_DEFAULT", field,
            fsdp_dtype_name(dtype), dtype == FSDP_F64 ? ", or f64 with a param_dtype of f64" : "");
    }
    return FSDP_OK;
}

static fsdp_dtype master_dtype_of(const fsdp_model_options *options)
{
    return options->param_dtype == FSDP_F64 ? FSDP_F64 : FSDP_F32;
}

/* FSDP_F64 is 0, so that options which nobody has set would ask for it: a model in f64 with SGD has no moments to set a type of. */
static fsdp_status check_f64(fsdp_context *ctx, const fsdp_model_options *o)
{
    if (o->param_dtype != FSDP_F64) {
        return FSDP_OK;
    }
    if (o->optimizer == FSDP_SGD && o->reduce_dtype == FSDP_F64 && o->buffer_dtype == FSDP_F64 &&
        o->moment_dtype == FSDP_F64) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "fsdp_model_create: param_dtype, reduce_dtype, buffer_dtype, moment_dtype and "
                                   "optimizer are all 0; start from FSDP_MODEL_OPTIONS_DEFAULT, and for a model in f64 "
                                   "with FSDP_SGD leave moment_dtype as it sets it");
    }
    if (o->placement != FSDP_ON_HOST) {
        return fsdpi_fail_together(ctx, FSDP_ERR_UNSUPPORTED,
                                   "fsdp_model_create: param_dtype is f64 in a model on a GPU; use FSDP_ON_HOST, or "
                                   "FSDP_F32");
    }
    return o->quantized_params
               ? fsdpi_fail_together(ctx, FSDP_ERR_UNSUPPORTED,
                                     "fsdp_model_create: quantized_params with a param_dtype of f64; set "
                                     "quantized_params to 0, or param_dtype to FSDP_F32")
               : FSDP_OK;
}

static fsdp_status check_placement(fsdp_context *ctx, const fsdp_model_options *options)
{
    if ((int)options->placement < 0 || (int)options->placement >= FSDP_N_PLACEMENTS) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "fsdp_model_create: %d is no placement; use one of fsdp_placement",
                                   (int)options->placement);
    }
    if (options->placement != FSDP_ON_HOST && ctx->gpu.device == NULL) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_UNSUPPORTED,
            "fsdp_model_create: a model on the GPU, and this context uses none (%s); use FSDP_ON_HOST",
            fsdpi_gpu_why_none(ctx));
    }
    return FSDP_OK;
}

/* Memory of a GPU is mapped once and for all. */
static fsdp_status check_addresses(fsdp_context *ctx, const fsdp_model_options *options)
{
    if (options->fixed_addresses && options->placement != FSDP_ON_HOST && !fsdpi_keeps_views(options->strategy) &&
        options->strategy != FSDP_NO_SHARD) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_UNSUPPORTED,
            "fsdp_model_create: fixed_addresses with %s on a GPU; use a strategy that keeps what is "
            "gathered (SHARD_GRAD_OP, SHARD_OPTIM, NO_SHARD, HYBRID_SHARD_ZERO2), or FSDP_ON_HOST",
            fsdp_strategy_name(options->strategy));
    }
    return FSDP_OK;
}

/* Records of passes and their sizes in bytes can be counted. */
static fsdp_status check_schedule(fsdp_context *ctx, const fsdp_model_options *options)
{
    if ((int)options->unused < 0 || (int)options->unused >= FSDP_N_UNUSED) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_model_create: unused is %d; use one of fsdp_unused",
                                   (int)options->unused);
    }
    if (options->kept_units < 0) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_model_create: kept_units is %d; it must be 0 or more",
                                   options->kept_units);
    }
    return options->recorded_passes <= MOST_RECORDED_PASSES
               ? FSDP_OK
               : fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                     "fsdp_model_create: recorded_passes is %zu; it must be at most %d",
                                     options->recorded_passes, MOST_RECORDED_PASSES);
}

/* What it would spare is not there. */
static const char *why_not_kept(fsdp_strategy strategy)
{
    if (strategy == FSDP_NO_SHARD) {
        return "gathers nothing";
    }
    return fsdpi_keeps_views(strategy) ? "keeps what it has gathered until the step"
                                       : "gathers within its groups; set group_size";
}

static fsdp_status check_keeping(fsdp_context *ctx, const fsdp_model_options *options)
{
    if (options->keep_on_node > 1) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_model_create: keep_on_node is %zu; it must be 0 or 1",
                                   options->keep_on_node);
    }
    if (options->keep_on_node && options->strategy != FSDP_FULL_SHARD && options->axis_strategies == NULL) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_UNSUPPORTED,
            "fsdp_model_create: keep_on_node with %s, which %s; leave it 0, or use it with FULL_SHARD",
            fsdp_strategy_name(options->strategy), why_not_kept(options->strategy));
    }
    if (options->keep_on_node && options->placement != FSDP_ON_HOST) {
        return fsdpi_fail_together(ctx, FSDP_ERR_UNSUPPORTED,
                                   "fsdp_model_create: keep_on_node for a model on a GPU; leave it 0 and use "
                                   "HYBRID_SHARD, which gathers within a node, or use FSDP_ON_HOST");
    }
    return FSDP_OK;
}

static fsdp_status check_options(fsdp_context *ctx, const fsdp_model_options *options)
{
    if ((int)options->strategy < 0 || (int)options->strategy >= FSDP_N_STRATEGIES) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_model_create: %d is no strategy; use one of fsdp_strategy",
                                   (int)options->strategy);
    }
    FSDP_TRY(fsdpi_check_states(ctx, "fsdp_model_create:", "FSDP_MODEL_OPTIONS_DEFAULT", options->optimizer, 0,
                                options->moment_dtype, master_dtype_of(options)));
    if (options->n_states > FSDP_MAX_STATES) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_model_create: n_states is %zu; it must be at most %d",
                                   options->n_states, FSDP_MAX_STATES);
    }
    if (!(isfinite(options->gradient_divisor) && options->gradient_divisor >= 0.0)) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_ARG,
            "fsdp_model_create: gradient_divisor is %g; it must be above 0, or 0 for the number of ranks",
            options->gradient_divisor);
    }
    FSDP_TRY(check_schedule(ctx, options));
    FSDP_TRY(check_placement(ctx, options));
    FSDP_TRY(check_dtype(ctx, "param_dtype", options->param_dtype, master_dtype_of(options)));
    FSDP_TRY(check_dtype(ctx, "reduce_dtype", options->reduce_dtype, master_dtype_of(options)));
    FSDP_TRY(check_dtype(ctx, "buffer_dtype", options->buffer_dtype, master_dtype_of(options)));
    FSDP_TRY(check_f64(ctx, options));
    if (options->quantized_params && options->strategy != FSDP_FULL_SHARD) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_UNSUPPORTED,
            "fsdp_model_create: quantized_params with %s; only FULL_SHARD gathers quantised parameters",
            fsdp_strategy_name(options->strategy));
    }
    FSDP_TRY(check_addresses(ctx, options));
    FSDP_TRY(check_keeping(ctx, options));
    return fsdpi_groups_check(ctx, options);
}

static void destroy_model(void *object)
{
    fsdp_model_destroy(object);
}

void fsdp_model_options_init_size(fsdp_model_options *options, size_t size)
{
    static const fsdp_model_options defaults = FSDP_MODEL_OPTIONS_DEFAULT;

    fsdpi_options_give(&defaults, sizeof defaults, options, size);
}

static void describe(const fsdp_model_options *o, char *label, size_t size)
{
    (void)snprintf(label, size,
                   "%s%s%s, seed %" PRIu64
                   ", memory limit %zu, optimizer %d with %zu states, group %d, %s, %s, buffers "
                   "%s, moments %s, divisor %g, placement %d, unused %d, %d kept, %zu recorded%s%s%s%s%s%.31s%s%.31s",
                   fsdp_strategy_name(o->strategy), o->axis_strategies != NULL ? " of " : "",
                   o->axis_strategies != NULL ? o->axis_strategies : "", o->seed, o->memory_limit, (int)o->optimizer,
                   o->n_states, o->group_size, fsdp_dtype_name(o->param_dtype), fsdp_dtype_name(o->reduce_dtype),
                   fsdp_dtype_name(o->buffer_dtype), fsdp_dtype_name(o->moment_dtype), o->gradient_divisor,
                   (int)o->placement, (int)o->unused, o->kept_units, o->recorded_passes,
                   o->local_gradients ? ", local gradients" : "", o->quantized_params ? ", quantised" : "",
                   o->fixed_addresses ? ", fixed addresses" : "", o->keep_on_node ? ", kept on nodes" : "",
                   o->tensor_axis != NULL ? ", tensor axis " : "", o->tensor_axis != NULL ? o->tensor_axis : "",
                   o->stage_axis != NULL ? ", stage axis " : "", o->stage_axis != NULL ? o->stage_axis : "");
}

/* The context of the mesh and the groups. Collective over the mesh, or over `ctx` where there is none. */
static fsdp_status open_contexts(fsdp_model *model)
{
    FSDP_TRY(fsdpi_plane_open(model->ctx, &model->plane));
    const fsdp_status status = fsdpi_groups_open(model);
    /* the caller's texts, which may be gone from here on */
    model->options.tensor_axis = model->options.stage_axis = model->options.axis_strategies = NULL;
    return fsdpi_plane_follow(model, "fsdp_model_create", status);
}

/* The place on a mesh, and what the strategies of its axes come to, which is checked as if the program had said so. */
static fsdp_status resolve(fsdp_context *ctx, fsdp_model_options *options, fsdpi_plane *plane)
{
    FSDP_TRY(fsdpi_plane_find(ctx, options, plane));
    FSDP_TRY(fsdpi_axis_strategies_resolve(ctx, plane, options));
    return check_options(ctx, options);
}

fsdp_status fsdp_model_create(fsdp_context *ctx, const fsdp_model_options *options, fsdp_model **model)
{
    fsdp_model_options chosen = FSDP_MODEL_OPTIONS_DEFAULT;
    char          label[4 * FSDPI_DETAIL_BYTES]; /* all of it is compared, and as much printed as there is room for */
    fsdp_context *all;
    fsdpi_plane   plane = {.ctx = ctx};
    fsdp_model   *made  = NULL;

    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_model_create: the context is NULL; pass one from fsdp_init");
    }
    fsdp_status       status = fsdpi_options_take(ctx, "fsdp_model_options", options, &chosen, sizeof chosen);
    const fsdp_status met    = fsdpi_plane_meet(ctx, &chosen, &all);
    if (all == NULL) {
        return met;
    }
    status = status == FSDP_OK ? met : status;
    status = status == FSDP_OK ? resolve(ctx, &chosen, &plane) : status;
    if (model == NULL) {
        status = fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_model_create: the place for the model is NULL");
    } else if (status == FSDP_OK) {
        *model = NULL;
        made   = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, sizeof(fsdp_model));
        status = made != NULL ? FSDP_OK : FSDP_ERR_MEMORY;
    }
    describe(&chosen, label, sizeof label);
    fsdpi_error_hand_on(ctx, all, status);
    status = fsdpi_agree(all, "fsdp_model_create", label, fsdpi_hash_text(FSDPI_HASH_START, label), status, all != ctx);
    fsdpi_error_hand_on(all, ctx, status);
    if (status != FSDP_OK || made == NULL || model == NULL) {
        fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, made, sizeof(fsdp_model));
        return status;
    }
    made->ctx          = ctx;
    made->plane        = plane;
    made->options      = chosen;
    made->master_dtype = master_dtype_of(&chosen);
    made->keeps        = chosen.kept_units > 0;
    made->compute      = chosen.placement == FSDP_ON_HOST ? &fsdpi_compute_host : &fsdpi_compute_device;
    status             = open_contexts(made);
    if (status != FSDP_OK) {
        fsdpi_groups_close(made);
        fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, made, sizeof(fsdp_model));
        return status;
    }
    fsdpi_own(ctx, &made->owned, "model", made, destroy_model);
    *model = made;
    return FSDP_OK;
}

fsdp_status fsdp_model_strategy(const fsdp_model *model, fsdp_strategy *strategy, int *group_size)
{
    if (model == NULL || strategy == NULL) {
        return fsdpi_fail(model != NULL ? model->ctx : NULL, FSDP_ERR_ARG, "fsdp_model_strategy: the %s is NULL",
                          model == NULL ? "model" : "place for the strategy");
    }
    *strategy = model->options.strategy;
    if (group_size != NULL) {
        *group_size = *strategy == FSDP_NO_SHARD ? 1 : model->shards->size;
    }
    return FSDP_OK;
}

/* ---- commit ------------------------------------------------------------------------------------------------------ */

static fsdp_status check_limit(const fsdp_model *model)
{
    const fsdp_model_options *options = &model->options;
    char                      dealt[FSDPI_NAME_BYTES + 64];
    fsdp_budget               budget;
    fsdpi_plan                plan;

    FSDP_TRY(fsdp_model_budget(model, options->strategy, 0, options->optimizer, &budget));
    if (options->memory_limit == 0 || budget.total <= options->memory_limit) {
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_plan_make(model, options->strategy, model->ctx->size, FSDPI_LARGEST_RANK, &plan));
    fsdpi_describe_dealt(model, &plan, FSDPI_LARGEST_RANK, dealt, sizeof dealt);
    return fsdpi_fail_together(model->ctx, FSDP_ERR_ARG,
                               "fsdp_model_commit: the model needs %zu bytes per rank, and the limit "
                               "is %zu; use more ranks, FULL_SHARD or a higher memory_limit%s",
                               budget.total, options->memory_limit, dealt);
}

static fsdp_status check_commit(fsdp_model *model)
{
    if (model->committed) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_STATE,
                                   "fsdp_model_commit: the model is committed; call it once");
    }
    if (model->add_status != FSDP_OK) {
        return fsdpi_record(model->ctx, model->add_status, "%s", model->add_error);
    }
    if (model->n_units == 0) {
        return fsdpi_fail_together(model->ctx, FSDP_ERR_ARG,
                                   "fsdp_model_commit: the model has 0 units; call fsdp_unit_add first");
    }
    FSDP_TRY(fsdpi_tensor_groups_check(model));
    return check_limit(model);
}

/* One agreement per unit, so that the error names the unit in which ranks differ. */
static fsdp_status agree_on_units(const fsdp_model *model, fsdp_status status)
{
    char label[FSDPI_DETAIL_BYTES];

    (void)snprintf(label, sizeof label, "%zu unit%s", model->n_units, fsdpi_s(model->n_units));
    FSDP_TRY(fsdpi_agree(model->ctx, "fsdp_model_commit", label, 0, status, false));
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        (void)snprintf(label, sizeof label, "unit '%.100s' with %zu tensor%s of %zu element%s%s%s", unit->name,
                       unit->n_tensors, fsdpi_s(unit->n_tensors), unit->elements, fsdpi_s(unit->elements),
                       unit->has_strategy ? ", " : "", unit->has_strategy ? fsdp_strategy_name(unit->strategy) : "");
        FSDP_TRY(fsdpi_agree(model->ctx, "fsdp_model_commit", label, fsdpi_hash_u64(unit->fingerprint, unit->place),
                             FSDP_OK, false));
    }
    return FSDP_OK;
}

/* And one per group. */
static fsdp_status agree_on_groups(const fsdp_model *model)
{
    char         label[FSDPI_DETAIL_BYTES];
    const size_t n = fsdpi_count_tensor_groups(model);

    (void)snprintf(label, sizeof label, "%zu group%s of tensors", n, fsdpi_s(n));
    FSDP_TRY(fsdpi_agree(model->ctx, "fsdp_model_commit", label, 0, FSDP_OK, false));
    for (const fsdpi_tensor_group *group = model->tensor_groups; group != NULL; group = group->next) {
        fsdpi_tensor_group_describe(group, label, sizeof label);
        FSDP_TRY(fsdpi_agree(model->ctx, "fsdp_model_commit", label, fsdpi_tensor_group_fingerprint(model, group),
                             FSDP_OK, false));
    }
    return FSDP_OK;
}

static fsdp_status agree_on_description(fsdp_model *model)
{
    fsdp_status status = agree_on_units(model, check_commit(model));

    status = status == FSDP_OK ? agree_on_groups(model) : status;
    FSDP_TRY(fsdpi_plane_follow(model, "fsdp_model_commit", status));
    return fsdpi_described_compare(model);
}

static void log_committed(const fsdp_model *model)
{
    char groups[40] = "";

    if (fsdpi_is_hybrid(model->options.strategy)) {
        (void)snprintf(groups, sizeof groups, " in groups of %d", model->shards->size);
    }
    fsdpi_log(model->ctx, FSDP_LOG_INFO, "model committed: %zu unit%s, %s%s%s", model->n_units, fsdpi_s(model->n_units),
              fsdp_strategy_name(model->options.strategy), groups,
              model->options.keep_on_node ? ", kept on nodes" : "");
}

fsdp_status fsdp_model_commit(fsdp_model *model)
{
    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_model_commit: the model is NULL; pass one from fsdp_model_create");
    }
    FSDP_TRY(agree_on_description(model));
    FSDP_TRY(fsdpi_node_memory_check(model));
    FSDP_TRY(fsdpi_device_memory_check(model));
    fsdp_status status = fsdpi_storage_open(model);
    status             = status == FSDP_OK ? fsdpi_draw_initial_values(model) : status;
    status             = fsdpi_plane_follow(model, "fsdp_model_commit", status);
    if (status != FSDP_OK) {
        fsdpi_storage_close(model);
        return status;
    }
    model->committed = true;
    model->syncs     = true;
    FSDP_TRY(fsdpi_gather_refresh(model, true));
    log_committed(model);
    return FSDP_OK;
}

void fsdp_model_destroy(fsdp_model *model)
{
    if (model == NULL) {
        return;
    }
    fsdp_context *ctx = model->ctx;
    fsdpi_disown(ctx, &model->owned);
    fsdp_loss_scaler_destroy(model->loss_scaler);
    fsdp_lbfgs_destroy(model->lbfgs);
    fsdpi_optimizers_release(model);
    if (model->committed) {
        fsdpi_step_end(model);
    }
    fsdpi_hook_room_close(model);
    fsdpi_storage_close(model);
    fsdpi_groups_close(model);
    while (model->first != NULL) {
        fsdp_unit *unit = model->first;

        model->first = unit->next;
        fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, unit, unit->bytes);
    }
    fsdpi_tensor_groups_release(model);
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, model, sizeof(fsdp_model));
}

static fsdp_status check_between(const fsdp_model *model, const char *function)
{
    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the model is NULL; pass one from fsdp_model_create", function);
    }
    if (!model->committed || model->open > 0) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE, "%s: %s", function,
                          !model->committed ? "call fsdp_model_commit first" : "a pass is open; end it first");
    }
    return FSDP_OK;
}

fsdp_status fsdp_model_set_sync(fsdp_model *model, int sync)
{
    static const char function[] = "fsdp_model_set_sync";

    FSDP_TRY(check_between(model, function));
    if (sync < FSDP_SYNC_NONE || sync > FSDP_SYNC_GROUP) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG, "%s: %d; use one of fsdp_sync", function, sync);
    }
    if (sync == FSDP_SYNC_NONE && !model->options.local_gradients) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE, "%s: the model was made without `local_gradients`; set it",
                          function);
    }
    model->syncs      = sync != FSDP_SYNC_NONE;
    model->group_only = sync == FSDP_SYNC_GROUP;
    return FSDP_OK;
}

fsdp_status fsdp_model_keep_gathered(fsdp_model *model, int on)
{
    static const char function[] = "fsdp_model_keep_gathered";

    FSDP_TRY(check_between(model, function));
    if (on != 0 && model->options.kept_units == 0) {
        return fsdpi_fail(model->ctx, FSDP_ERR_STATE, "%s: the model was made without `kept_units`; set it", function);
    }
    model->keeps = on != 0;
    return FSDP_OK;
}
