#include "shard/model/budget.h"

#include "lib/context/gpu_context.h"
#include "lib/context/init.h"
#include "lib/device/memory.h"
#include "lib/sync/staging.h"
#include "shard/optimizer/optimizer.h"
#include "shard/optimizer/optimizer_custom.h"
#include "shard/optimizer/optimizer_device.h"
#include "shard/state/optimizer_kind.h"
#include "shard/state/plan.h"
#include "shard/state/strategy.h"
#include "shard/state/tensor_groups.h"

static fsdp_status check_budget(const fsdp_model *model, fsdp_strategy strategy, int size,
                                fsdp_optimizer_kind optimizer, const fsdp_budget *budget)
{
    if (budget == NULL) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG, "fsdp_model_budget: the place for the budget is NULL");
    }
    if ((int)strategy < 0 || (int)strategy >= FSDP_N_STRATEGIES || !fsdpi_is_optimizer_kind(optimizer)) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                          "fsdp_model_budget: strategy %d with optimizer %d; use one of "
                          "fsdp_strategy and one of fsdp_optimizer_kind",
                          (int)strategy, (int)optimizer);
    }
    if (size < 0) {
        return fsdpi_fail(model->ctx, FSDP_ERR_ARG,
                          "fsdp_model_budget: %d ranks; pass at least 1, or 0 for the context's", size);
    }
    return FSDP_OK;
}

/* How many ranks the contexts of a model have: that of all ranks, and those of the group and of the replicas where there
 * are several. */
static size_t list_contexts(const fsdpi_plan *plan, int sizes[3])
{
    size_t n = 0;

    sizes[n++] = plan->size;
    if (fsdpi_is_hybrid(plan->strategy)) {
        sizes[n++] = plan->group;
    }
    if (fsdpi_is_hybrid(plan->strategy) && plan->group < plan->size) {
        sizes[n++] = plan->size / plan->group;
    }
    return n;
}

/* One for each group, and one for what belongs to none. */
static size_t count_optimizers(const fsdp_model *model, const fsdpi_plan *plan)
{
    const size_t n_groups = fsdpi_count_tensor_groups(model);

    return n_groups + (plan->plain > 0 || n_groups == 0);
}

/* What is assumed of the tensors of no group. */
static fsdp_model_group plain_group(const fsdp_model *model, fsdp_optimizer_kind optimizer)
{
    return (fsdp_model_group){.size         = sizeof(fsdp_model_group),
                              .granularity  = fsdpi_granularity(model, NULL),
                              .optimizer    = optimizer,
                              .moment_dtype = model->options.moment_dtype,
                              .n_states     = model->options.n_states};
}

/* BYTES through which the steps of one, or of all, work. */
static size_t working_bytes(const fsdp_model *model, const fsdpi_plan *plan, const fsdpi_tensor_group *group,
                            const fsdp_model_group *assumed)
{
    return fsdpi_optimizer_staging(model, plan, assumed) +
           fsdpi_alloc_size(fsdpi_optimizer_scratch(model, plan, group, assumed));
}

static size_t all_working_bytes(const fsdp_model *model, const fsdpi_plan *plan, const fsdp_model_group *plain)
{
    size_t bytes = plan->plain > 0 ? working_bytes(model, plan, NULL, plain) : 0;

    for (const fsdpi_tensor_group *group = model->tensor_groups; group != NULL; group = group->next) {
        bytes += working_bytes(model, plan, group, &group->own);
    }
    return bytes;
}

static void add_contexts(const fsdp_model *model, const fsdpi_plan *plan, fsdp_budget *budget)
{
    const fsdp_context *ctx = model->ctx;
    int                 sizes[3];
    const size_t        n = list_contexts(plan, sizes);

    for (size_t i = 0; i < n; i++) {
        budget->bytes[FSDP_MEMORY_STAGING] += fsdpi_staging_total((size_t)ctx->config.staging_bytes) +
                                              fsdpi_gpu_context_host_bytes(ctx, sizes[i]) +
                                              fsdpi_gpu_context_bytes(ctx);
        budget->bytes[FSDP_MEMORY_BOOKKEEPING] += fsdpi_context_bookkeeping(sizes[i], ctx->config.record);
    }
    budget->bytes[FSDP_MEMORY_BOOKKEEPING] +=
        fsdpi_alloc_size(sizeof(fsdp_model)) + count_optimizers(model, plan) * fsdpi_optimizer_bookkeeping(plan);
    budget->device += n * fsdpi_gpu_context_bytes(ctx);
}

size_t fsdpi_contexts_device_bytes(const fsdp_model *model, fsdp_strategy strategy, int size)
{
    fsdpi_plan plan;
    int        sizes[3];

    return fsdpi_plan_make(model, strategy, size, FSDPI_LARGEST_RANK, &plan) == FSDP_OK
               ? list_contexts(&plan, sizes) * fsdpi_gpu_context_bytes(model->ctx)
               : 0;
}

/* What the model has on a GPU, of what has been added up, and for its sake. `state`: BYTES of moments. */
static void add_device(const fsdp_model *model, const fsdpi_plan *plan, size_t state, fsdp_budget *budget)
{
    const size_t norm    = fsdpi_alloc_size(plan->norm_bytes);
    const size_t scratch = fsdpi_alloc_size(plan->norm_scratch_bytes);

    if (!fsdpi_is_on_device(model)) {
        return;
    }
    budget->bytes[FSDP_MEMORY_BOOKKEEPING] += norm + scratch;
    budget->device += budget->bytes[FSDP_MEMORY_PARAMETERS] + budget->bytes[FSDP_MEMORY_GRADIENTS] +
                      budget->bytes[FSDP_MEMORY_OPTIMIZER] + budget->bytes[FSDP_MEMORY_GATHERED] +
                      budget->bytes[FSDP_MEMORY_GRADIENT_VIEWS] + scratch;
    if (fsdpi_is_offloaded(model)) {
        budget->device -= plan->held * fsdpi_master_width(model) + state;
    }
}

/* Of one rank, or of the largest or mean one. */
static fsdp_status add_up(const fsdp_model *model, fsdp_strategy strategy, int size, int rank,
                          fsdp_optimizer_kind optimizer, fsdp_budget *budget)
{
    fsdp_budget sum = {0};
    fsdpi_plan  plan;

    FSDP_TRY(fsdpi_plan_make(model, strategy, size > 0 ? size : model->ctx->size, rank, &plan));
    const fsdp_model_group plain = plain_group(model, optimizer);
    const size_t state = fsdpi_optimizer_states(optimizer, plain.n_states) * plan.plain_moment + plan.state_bytes;
    const size_t width = fsdpi_master_width(model);
    sum.parameters     = plan.parameters;
    sum.bytes[FSDP_MEMORY_PARAMETERS]     = plan.held * width + plan.low_bytes + plan.ignored_bytes;
    sum.bytes[FSDP_MEMORY_GRADIENTS]      = (plan.held_trainable + plan.local) * width;
    sum.bytes[FSDP_MEMORY_OPTIMIZER]      = state + all_working_bytes(model, &plan, &plain);
    sum.bytes[FSDP_MEMORY_GATHERED]       = plan.views_bytes + plan.kept_on_node;
    sum.bytes[FSDP_MEMORY_GRADIENT_VIEWS] = plan.buckets * fsdp_dtype_size(model->options.reduce_dtype);
    sum.bytes[FSDP_MEMORY_BOOKKEEPING]    = plan.bookkeeping_bytes;
    add_device(model, &plan, state, &sum);
    add_contexts(model, &plan, &sum);
    for (int kind = 0; kind < FSDP_N_MEMORY_KINDS; kind++) {
        sum.total += sum.bytes[kind];
    }
    sum.shared    = fsdpi_is_on_device(model) ? 0 : plan.views_bytes;
    sum.unsharded = (plan.parameters + plan.trainable) * width + plan.whole_state_bytes + plan.ignored_bytes +
                    fsdpi_states_bytes(&plain, plan.plain_elements);
    *budget = sum;
    return FSDP_OK;
}

fsdp_status fsdpi_budget_of_rank(const fsdp_model *model, fsdp_budget *budget)
{
    return add_up(model, model->options.strategy, 0, model->shards->rank, model->options.optimizer, budget);
}

fsdp_status fsdp_model_budget(const fsdp_model *model, fsdp_strategy strategy, int size, fsdp_optimizer_kind optimizer,
                              fsdp_budget *budget)
{
    fsdp_budget largest, mean;

    if (model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_model_budget: the model is NULL; pass one from fsdp_model_create");
    }
    FSDP_TRY(check_budget(model, strategy, size, optimizer, budget));
    FSDP_TRY(add_up(model, strategy, size, FSDPI_LARGEST_RANK, optimizer, &largest));
    FSDP_TRY(add_up(model, strategy, size, FSDPI_MEAN_RANK, optimizer, &mean));
    largest.mean_total = mean.total;
    *budget            = largest;
    return FSDP_OK;
}
